//! Which of three parts this process plays.
//!
//! There is one executable. Started by a user it is the orchestrator, which starts itself again as a server
//! or as a generator; the part is told in the environment, because a server takes its address from its first
//! argument.

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

/// A part to be played in a process of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// One of the example servers or of the rivals, by name.
    Server(String),
    /// The client.
    Generator,
    /// What a user wants to be loaded: a line for a shell, which takes our place.
    Command(String),
    /// The process that measures fibra and its rivals.
    #[cfg(feature = "rivals")]
    Comparer,
}

impl Role {
    /// A command that plays this part on processor `cpu`, with pipes for its streams.
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

    /// The part this process was started for, if it is one of ours; takes up its processor and ties it to its
    /// parent.
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

/// Where the two processes run: apart from each other where there are two processors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub(crate) server: Option<usize>,
    pub(crate) generator: Option<usize>,
}

impl Places {
    /// The first that is allowed, and one beside it; the generator's may be chosen.
    pub(crate) fn choose(generator: Option<usize>) -> Self {
        let places = Self::among(&sys::allowed_cpus(), sys::sharing_a_core);
        Self { generator: generator.or(places.generator), ..places }
    }

    /// Of these the first, and the next that is on another core: threads of one take from each other what
    /// they use.
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
