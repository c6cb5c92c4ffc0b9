//! `Command`, with the methods of [`std::process::Command`].

#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, CommandArgs, CommandEnvs, ExitStatus, Output, Stdio};

use fibra_runtime::driver::unpinned;

use super::Child;
use crate::waiting::convert::forward;

/// Describes a child process and starts it: [`std::process::Command`], for tasks.
///
/// # Differences from std
///
/// * [`kill_on_drop`](Command::kill_on_drop) is ours.
/// * The methods that std has in its extension trait for Unix are methods of the type; the trait is there as well
///   ([`CommandExt`](crate::os::unix::process::CommandExt)).
///
/// # Examples
///
/// ```
/// use fibra_io::process::Command;
///
/// # fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?.run(|| -> std::io::Result<()> {
/// let output = Command::new("sh").args(["-c", "echo $GREETING"]).env("GREETING", "hello").output()?;
/// assert!(output.status.success());
/// assert_eq!(output.stdout, b"hello\n");
/// # Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// All that can be said of a child:
///
/// ```
/// use std::path::Path;
/// use fibra_io::os::unix::fs::MetadataExt;
/// use fibra_io::process::{Command, Stdio};
///
/// let this_process = std::fs::metadata("/proc/self")?;
/// let mut command = Command::new("sh");
/// command.arg("-c").arg("test $0 = renamed && test $PWD$WORD = /yes && test -z $HOME");
/// command.arg0("renamed").current_dir("/").uid(this_process.uid()).gid(this_process.gid());
/// command.env_clear().envs([("WORD", "yes")]).env_remove("HOME");
/// command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
/// command.process_group(0).kill_on_drop(true);
/// assert!(command.status()?.success() && command.spawn()?.wait()?.success());
///
/// assert_eq!(command.get_program(), "sh");
/// assert_eq!((command.get_args().len(), command.get_envs().len()), (2, 1));
/// assert_eq!(command.get_current_dir(), Some(Path::new("/")));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Command {
    inner: process::Command,
    /// Which of the streams were described, and so are not for [`output`](Command::output) to choose.
    described: Described,
    kill_on_drop: bool,
    by_pidfd: bool,
}

#[derive(Default)]
struct Described {
    stdin: bool,
    stdout: bool,
    stderr: bool,
}

impl Command {
    /// Describes a child that runs `program`, which is looked for in `PATH`.
    ///
    /// It has no arguments, and the environment, the folder and the streams of this process.
    pub fn new<S: AsRef<OsStr>>(program: S) -> Command {
        process::Command::new(program).into()
    }

    /// Adds an argument.
    pub fn arg<S: AsRef<OsStr>>(&mut self, arg: S) -> &mut Command {
        self.inner.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<I, S>(&mut self, args: I) -> &mut Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.inner.args(args);
        self
    }

    /// Sets a variable of its environment.
    pub fn env<K, V>(&mut self, key: K, val: V) -> &mut Command
    where
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.inner.env(key, val);
        self
    }

    /// Sets variables of its environment.
    pub fn envs<I, K, V>(&mut self, vars: I) -> &mut Command
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.inner.envs(vars);
        self
    }

    /// Takes a variable out of its environment.
    pub fn env_remove<K: AsRef<OsStr>>(&mut self, key: K) -> &mut Command {
        self.inner.env_remove(key);
        self
    }

    /// Removes all variables from its environment, inherited and set.
    pub fn env_clear(&mut self) -> &mut Command {
        self.inner.env_clear();
        self
    }

    /// Sets the folder that it runs in.
    pub fn current_dir<P: AsRef<Path>>(&mut self, dir: P) -> &mut Command {
        self.inner.current_dir(dir);
        self
    }

    /// Sets its standard input.
    ///
    /// The default is that of this process. For [`output`](Command::output) it is empty.
    pub fn stdin<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.described.stdin = true;
        self.inner.stdin(cfg);
        self
    }

    /// Sets its standard output.
    ///
    /// The default is that of this process. For [`output`](Command::output) it is a pipe.
    pub fn stdout<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.described.stdout = true;
        self.inner.stdout(cfg);
        self
    }

    /// Sets its standard error.
    ///
    /// The default is that of this process. For [`output`](Command::output) it is a pipe.
    pub fn stderr<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.described.stderr = true;
        self.inner.stderr(cfg);
        self
    }

    /// Sets whether dropping the [`Child`] kills a child that was not waited for.
    ///
    /// That holds for a drop by a panic or a cancellation, too. By default the child goes on running.
    ///
    /// The child alone is killed, not what it has started.
    pub fn kill_on_drop(&mut self, kill: bool) -> &mut Command {
        self.kill_on_drop = kill;
        self
    }

    /// Sets its user. See [`std::os::unix::process::CommandExt::uid`].
    pub fn uid(&mut self, id: u32) -> &mut Command {
        self.inner.uid(id);
        self
    }

    /// Sets its group. See [`std::os::unix::process::CommandExt::gid`].
    pub fn gid(&mut self, id: u32) -> &mut Command {
        self.inner.gid(id);
        self
    }

    /// Sets what it sees as its own name, argument 0.
    pub fn arg0<S: AsRef<OsStr>>(&mut self, arg: S) -> &mut Command {
        self.inner.arg0(arg);
        self
    }

    /// Sets the group of processes that it belongs to; 0 is one of its own.
    pub fn process_group(&mut self, pgroup: i32) -> &mut Command {
        self.inner.process_group(pgroup);
        self
    }

    pub(crate) fn std_mut(&mut self) -> &mut process::Command {
        &mut self.inner
    }

    /// Replaces this process by the program, and returns only the error if it cannot.
    ///
    /// Nothing of this process is unwound.
    ///
    /// When it comes back, this process may have changed, as with std: signals that were ignored, `SIGPIPE` among them, may
    /// be so no more.
    ///
    /// # Examples
    ///
    /// ```
    /// use fibra_io::process::Command;
    ///
    /// let error = Command::new("/there is no such program").exec();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// ```
    pub fn exec(&mut self) -> io::Error {
        unpinned(|| self.inner.exec())
    }

    /// Starts the child. Its streams are this process's where none were described.
    ///
    /// # Errors
    ///
    /// `NotFound` or `PermissionDenied` when the program cannot be run, and when there is no process or descriptor left.
    pub fn spawn(&mut self) -> io::Result<Child> {
        Ok(Child::adopt(unpinned(|| self.inner.spawn())?, self.kill_on_drop, self.by_pidfd))
    }

    /// Starts the child, collects its output and error, and waits for its end.
    ///
    /// # Cancellation
    ///
    /// Every wait is a cancellation point. What was read is lost, and the child goes on running, unless
    /// [`kill_on_drop`](Command::kill_on_drop) says otherwise.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Command::spawn) and [`Child::wait_with_output`]. A child that fails is none.
    pub fn output(&mut self) -> io::Result<Output> {
        self.set_others(Stdio::null(), Stdio::piped);
        let child = self.spawn();
        // For the next `spawn`, as they were.
        self.set_others(Stdio::inherit(), Stdio::inherit);
        child?.wait_with_output()
    }

    /// Sets the standard streams that the user has not described.
    fn set_others(&mut self, input: Stdio, output: fn() -> Stdio) {
        if !self.described.stdin {
            self.inner.stdin(input);
        }
        if !self.described.stdout {
            self.inner.stdout(output());
        }
        if !self.described.stderr {
            self.inner.stderr(output());
        }
    }

    /// Starts the child and waits for its end.
    ///
    /// Streams that were not set are those of this process.
    ///
    /// # Cancellation
    ///
    /// The wait is a cancellation point. The child goes on running, unless [`kill_on_drop`](Command::kill_on_drop) says
    /// otherwise.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Command::spawn) and [`Child::wait`]. A child that fails is none.
    pub fn status(&mut self) -> io::Result<ExitStatus> {
        self.spawn()?.wait()
    }

    forward! { self => self.inner;
        /// Returns the program.
        fn get_program() -> &OsStr;

        /// Returns the arguments.
        fn get_args() -> CommandArgs<'_>;

        /// Returns the variables that were set, and, without a value, those that were taken out.
        fn get_envs() -> CommandEnvs<'_>;

        /// Returns the folder that it is to run in, if one was set.
        fn get_current_dir() -> Option<&Path>;
    }

    /// Waits for the child without a descriptor of the process: for tests.
    #[doc(hidden)]
    pub fn without_pidfd(&mut self) -> &mut Command {
        self.by_pidfd = false;
        self
    }
}

impl From<process::Command> for Command {
    /// Takes over a description of std's. [`output`](Command::output) chooses the streams of the child as if none had been
    /// described, since std does not tell.
    fn from(inner: process::Command) -> Command {
        Command { inner, described: Described::default(), kill_on_drop: false, by_pidfd: true }
    }
}

impl fmt::Debug for Command {
    /// As std prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
