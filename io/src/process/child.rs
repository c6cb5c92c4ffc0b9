//! `Child`, with std's methods and timed waits.

#![forbid(unsafe_code)]

use std::io;
use std::process::{self, ExitStatus, Output};
use std::time::{Duration, Instant};

use fibra_runtime::time::deadline;
use fibra_runtime::wait;

use super::handle::ChildHandle;
use super::output::read_both;
use super::{ChildStderr, ChildStdin, ChildStdout};

/// A child process, running or ended: [`std::process::Child`], for tasks.
///
/// It is made by [`Command::spawn`](super::Command::spawn).
///
/// Dropping it does not end the child, unless [`kill_on_drop`](super::Command::kill_on_drop) is set. A
/// dropped child leaves no zombie, unlike in std.
///
/// # Deadlocks
///
/// A child that writes more than a pipe holds (64 KiB on Linux) waits until its output is read. So read its
/// output before the wait for its end, or at the same time, as [`wait_with_output`](Child::wait_with_output)
/// does.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
/// use fibra_io::process::{Command, Stdio};
///
/// let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
/// child.stdin.take().unwrap().write_all(b"through the child")?;
/// let mut text = String::new();
/// child.stdout.take().unwrap().read_to_string(&mut text)?;
/// assert_eq!(text, "through the child");
/// assert!(child.wait()?.success());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// An end by force, and a wait for all output:
///
/// ```
/// use std::time::{Duration, Instant};
/// use fibra_io::process::{Child, Command, Stdio};
///
/// let mut child: Child = Command::new("cat").stdin(Stdio::piped()).spawn()?;
/// assert!(child.id() > 0 && child.try_wait()?.is_none());
/// let input = child.stdin.take();
/// assert_eq!(child.wait_timeout(Duration::from_millis(1))?, None);
/// child.kill()?;
/// let status = child.wait_deadline(Instant::now() + Duration::from_secs(60))?;
/// assert!(!status.unwrap().success());
///
/// let mut command = Command::new("sh");
/// command.args(["-c", "echo out; echo err >&2"]);
/// let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?.wait_with_output()?;
/// assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Child {
    /// Our end of the pipe to its standard input, if it has one.
    pub stdin: Option<ChildStdin>,
    /// Our end of the pipe from its standard output, if it has one.
    pub stdout: Option<ChildStdout>,
    /// Our end of the pipe from its standard error, if it has one.
    pub stderr: Option<ChildStderr>,
    handle: ChildHandle,
}

impl Child {
    pub(super) fn adopt(mut child: process::Child, kill_on_drop: bool, by_pidfd: bool) -> Child {
        Child {
            stdin: child.stdin.take().map(ChildStdin::from),
            stdout: child.stdout.take().map(ChildStdout::from),
            stderr: child.stderr.take().map(ChildStderr::from),
            handle: ChildHandle::new(child, kill_on_drop, by_pidfd),
        }
    }

    /// Returns the number of the process.
    ///
    /// Once it has been waited for, the system may give the number to another one.
    pub fn id(&self) -> u32 {
        self.handle.id()
    }

    /// Kills the child (`SIGKILL`), without waiting for its end.
    ///
    /// It does nothing if the child has been waited for.
    ///
    /// # Errors
    ///
    /// When the child runs as another user by now.
    pub fn kill(&mut self) -> io::Result<()> {
        self.handle.kill()
    }

    /// Returns the status of the child if it has ended, and does not wait.
    ///
    /// It counts against the operation budget, so the caller may yield: a loop over it lets other
    /// tasks run.
    ///
    /// # Errors
    ///
    /// When the child was waited for by other means, by a handler of `SIGCHLD` for one.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        wait::charge();
        self.handle.try_wait()
    }

    /// Waits until the child has ended, and returns its status.
    ///
    /// Later calls return it again. Our end of the child's standard input is closed first, so that a child that reads to
    /// the end comes to it.
    ///
    /// # Cancellation
    ///
    /// A wait is a cancellation point; the child can be waited for again.
    ///
    /// # Errors
    ///
    /// As [`try_wait`](Child::try_wait); and `TimedOut` where it would have to wait in a task that unwinds from a cancellation, or in
    /// destructors that end a cancelled task.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        let status = self.handle.wait(None)?;
        Ok(status.expect("a wait without a deadline ends with the child"))
    }

    /// Waits at most `timeout` for the child; returns `None` if it has not ended.
    ///
    /// # Cancellation
    ///
    /// As for [`wait`](Child::wait).
    ///
    /// # Errors
    ///
    /// As [`wait`](Child::wait).
    pub fn wait_timeout(&mut self, timeout: Duration) -> io::Result<Option<ExitStatus>> {
        drop(self.stdin.take());
        self.handle.wait(deadline(timeout))
    }

    /// Waits at most until `deadline` for the child; returns `None` if it has not ended.
    ///
    /// # Cancellation
    ///
    /// As for [`wait`](Child::wait).
    ///
    /// # Errors
    ///
    /// As [`wait`](Child::wait).
    pub fn wait_deadline(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        drop(self.stdin.take());
        self.handle.wait(Some(deadline))
    }

    /// Reads all that the child writes, and waits for its end.
    ///
    /// It reads until the child has closed both streams. A stream that is no pipe yields nothing. Our end of the child's
    /// standard input is closed first.
    ///
    /// Both streams are read at once, by a second task or, in a plain thread, by a second thread. An
    /// error of the first stream does not wait for the second stream, whose thread then reads to the end.
    ///
    /// # Cancellation
    ///
    /// Every wait is a cancellation point. What was read is lost, and the child dropped.
    ///
    /// # Errors
    ///
    /// As [`wait`](Child::wait); and when there is no thread, or no stack, to read with.
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let (stdout, stderr) = read_both(self.stdout.take(), self.stderr.take())?;
        Ok(Output { status: self.wait()?, stdout, stderr })
    }
}

impl From<process::Child> for Child {
    /// Takes over a child of std's, which is not killed on drop.
    fn from(child: process::Child) -> Child {
        Child::adopt(child, false, true)
    }
}
