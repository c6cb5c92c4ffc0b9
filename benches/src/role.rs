//! The role of this process: orchestrator, server or generator.
//!
//! There is one executable. A user starts the orchestrator, which starts the executable again as a server or
//! a generator. The environment holds the role, because a server takes its address from its first argument.

use crate::sys;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::{env, io, process};

const ROLE: &str = "FIBRA_LOAD_ROLE";
const CPU: &str = "FIBRA_LOAD_CPU";
const PARENT: &str = "FIBRA_LOAD_PARENT";
const GENERATOR: &str = "generator";
const COMMAND: &str = "command";
#[cfg(feature = "rivals")]
const COMPARER: &str = "comparer";

/// A role that has a process of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// One of the example servers or of the rivals, by name.
    Server(String),
    /// The client.
    Generator,
    /// A user's server: a line for a shell, which replaces this process.
    Command(String),
    /// The process that measures fibra and its rivals.
    #[cfg(feature = "rivals")]
    Comparer,
}

impl Role {
    /// Returns a command that runs this role on processor `cpu`, with pipes for its streams.
    pub(crate) fn command(&self, cpu: Option<usize>) -> io::Result<Command> {
        let mut command = Command::new(env::current_exe()?);
        let (name, stdin) = match self {
            Self::Server(name) => (name.as_str(), Stdio::null()),
            Self::Generator => (GENERATOR, Stdio::piped()),
            Self::Command(line) => {
                command.arg(line);
                (COMMAND, Stdio::null())
            }
            #[cfg(feature = "rivals")]
            Self::Comparer => (COMPARER, Stdio::piped()),
        };
        command.env(ROLE, name).env(PARENT, process::id().to_string()).env_remove(CPU);
        if let Some(cpu) = cpu {
            command.env(CPU, cpu.to_string());
        }
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Returns the role that this process was started for, if there is one.
    ///
    /// Pins the process to its processor and ties it to its parent.
    pub(crate) fn assume() -> Option<Self> {
        let role = env::var(ROLE).ok()?;
        let _ = sys::die_with_parent();
        if env::var(PARENT).ok()? != std::os::unix::process::parent_id().to_string() {
            // The parent ended before we were tied to it.
            process::exit(1);
        }
        if let Some(cpu) = env::var(CPU).ok().and_then(|cpu| cpu.parse().ok())
            && let Err(error) = sys::pin_to(cpu)
        {
            eprintln!("cannot stay on processor {cpu}: {error}");
        }
        // Each connection is a descriptor or two.
        let _ = sys::raise_open_files();
        Some(match role.as_str() {
            GENERATOR => Self::Generator,
            COMMAND => Self::Command(env::args().nth(1)?),
            #[cfg(feature = "rivals")]
            COMPARER => Self::Comparer,
            _ => Self::Server(role),
        })
    }
}

/// Becomes the command of a user. The shell is to become it in its turn, so that this process is the server's
/// own: its place, its tie to the parent and its meters are.
pub(crate) fn become_command(line: &str) -> process::ExitCode {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("exec {line}")]).env_remove(ROLE).env_remove(CPU).env_remove(PARENT);
    eprintln!("/bin/sh: {}", shell.exec());
    process::ExitCode::FAILURE
}

/// The processors of server and generator: two different ones, where there are two.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub(crate) server: Option<usize>,
    pub(crate) generator: Option<usize>,
}

impl Places {
    /// Picks the first allowed processor for the server, and another for the generator, which may be set.
    pub(crate) fn choose(generator: Option<usize>) -> Self {
        let places = Self::among(&sys::allowed_cpus(), sys::sharing_a_core);
        Self { generator: generator.or(places.generator), ..places }
    }

    /// Picks the first of these, and the next one on another core: threads of one core share its resources.
    fn among(allowed: &[usize], sharing: impl Fn(usize) -> Vec<usize>) -> Self {
        let [server, others @ ..] = allowed else { return Self::default() };
        let siblings = sharing(*server);
        let elsewhere = others.iter().find(|cpu| !siblings.contains(cpu));
        match elsewhere.or(others.first()) {
            Some(&generator) => Self { server: Some(*server), generator: Some(generator) },
            None => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests;
