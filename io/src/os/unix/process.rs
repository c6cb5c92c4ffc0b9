//! Additions to [`process`](crate::process): std's traits, which work on our types.

use std::ffi::OsStr;
use std::io;

pub use std::os::unix::process::{ExitStatusExt, parent_id};

use crate::process::Command;

impl Command {
    /// Lets `f` run in the child before the program does.
    ///
    /// # Safety
    ///
    /// As for [`std::os::unix::process::CommandExt::pre_exec`]: the child is a copy of this process
    /// with one thread, so `f` may do only what a signal handler may. That excludes everything of
    /// fibra.
    ///
    /// # Examples
    ///
    /// ```
    /// use fibra_io::process::Command;
    ///
    /// let mut command = Command::new("true");
    /// // SAFETY: the closure does nothing but return.
    /// unsafe { command.pre_exec(|| Ok(())) };
    /// assert!(command.status()?.success());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub unsafe fn pre_exec<F>(&mut self, f: F) -> &mut Command
    where
        F: FnMut() -> io::Result<()> + Send + Sync + 'static,
    {
        // SAFETY: the caller's promise is the same.
        unsafe { std::os::unix::process::CommandExt::pre_exec(self.std_mut(), f) };
        self
    }
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Command {}

/// Adds what only Unix has to [`Command`]: std's `CommandExt`, for tasks.
///
/// The type has all of it as methods of its own. So the trait is for code that names it.
///
/// # Examples
///
/// ```
/// use fibra_io::os::unix::fs::MetadataExt;
/// use fibra_io::os::unix::process::CommandExt;
/// use fibra_io::process::Command;
///
/// fn prepare(command: &mut impl CommandExt) -> std::io::Result<()> {
///     let this_process = std::fs::metadata("/proc/self")?;
///     command.uid(this_process.uid());
///     command.gid(this_process.gid());
///     command.arg0("renamed");
///     command.process_group(0);
///     // SAFETY: the closure does nothing but return.
///     unsafe { command.pre_exec(|| Ok(())) };
///     Ok(())
/// }
///
/// let mut command = Command::new("sh");
/// prepare(&mut command)?;
/// assert_eq!(command.args(["-c", "echo $0"]).output()?.stdout, b"renamed\n");
/// let error = CommandExt::exec(&mut Command::new("/there is no such program"));
/// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait CommandExt: sealed::Sealed {
    /// Calls [`Command::uid`].
    fn uid(&mut self, id: u32) -> &mut Command;

    /// Calls [`Command::gid`].
    fn gid(&mut self, id: u32) -> &mut Command;

    /// Calls [`Command::pre_exec`].
    ///
    /// # Safety
    ///
    /// As for [`Command::pre_exec`].
    unsafe fn pre_exec<F>(&mut self, f: F) -> &mut Command
    where
        F: FnMut() -> io::Result<()> + Send + Sync + 'static;

    /// Calls [`Command::exec`].
    fn exec(&mut self) -> io::Error;

    /// Calls [`Command::arg0`].
    fn arg0<S: AsRef<OsStr>>(&mut self, arg: S) -> &mut Command;

    /// Calls [`Command::process_group`].
    fn process_group(&mut self, pgroup: i32) -> &mut Command;
}

impl CommandExt for Command {
    fn uid(&mut self, id: u32) -> &mut Command {
        self.uid(id)
    }

    fn gid(&mut self, id: u32) -> &mut Command {
        self.gid(id)
    }

    unsafe fn pre_exec<F>(&mut self, f: F) -> &mut Command
    where
        F: FnMut() -> io::Result<()> + Send + Sync + 'static,
    {
        // SAFETY: the caller's promise is the same.
        unsafe { self.pre_exec(f) }
    }

    fn exec(&mut self) -> io::Error {
        self.exec()
    }

    fn arg0<S: AsRef<OsStr>>(&mut self, arg: S) -> &mut Command {
        self.arg0(arg)
    }

    fn process_group(&mut self, pgroup: i32) -> &mut Command {
        self.process_group(pgroup)
    }
}
