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

/// Adds what only Unix has to [`Command`]: std's trait of the same name, for our type. The type has
/// all of it as methods of its own, so the trait is for code that names it.
pub trait CommandExt: sealed::Sealed {
    /// As [`Command::uid`].
    fn uid(&mut self, id: u32) -> &mut Command;

    /// As [`Command::gid`].
    fn gid(&mut self, id: u32) -> &mut Command;

    /// As [`Command::pre_exec`].
    ///
    /// # Safety
    ///
    /// As for [`Command::pre_exec`].
    unsafe fn pre_exec<F>(&mut self, f: F) -> &mut Command
    where
        F: FnMut() -> io::Result<()> + Send + Sync + 'static;

    /// As [`Command::exec`].
    fn exec(&mut self) -> io::Error;

    /// As [`Command::arg0`].
    fn arg0<S: AsRef<OsStr>>(&mut self, arg: S) -> &mut Command;

    /// As [`Command::process_group`].
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
