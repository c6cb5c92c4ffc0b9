//! The handle of a child: how its end is waited for, and what becomes of it without a waiter.
//!
//! The number of a child is its own until it has been waited for, and only std's value in here does that. So
//! a signal that is sent through it, or a descriptor that is opened for it, concerns no other process.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;
use std::process::{self, ExitStatus};
use std::time::Instant;

use fibra_runtime::wait;

use super::reaper::reap;
use crate::sys::Direction;
use crate::sys::process::open_pidfd;
use crate::waiting::descriptor::Descriptor;
use crate::waiting::looks::look_until;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ChildHandle {
    /// There until it is dropped.
    child: Option<process::Child>,
    /// Readable once the child has ended.
    pidfd: Option<Descriptor<OwnedFd>>,
    kill_on_drop: bool,
}

impl ChildHandle {
    pub(super) fn new(child: process::Child, kill_on_drop: bool, by_pidfd: bool) -> ChildHandle {
        let pidfd = if by_pidfd { open_pidfd(child.id()) } else { None };
        ChildHandle { child: Some(child), pidfd: pidfd.map(|fd| Descriptor::new(fd, false)), kill_on_drop }
    }

    /// What it is held by.
    fn parts(&mut self) -> (&mut process::Child, Option<&Descriptor<OwnedFd>>) {
        (self.child.as_mut().expect(HELD), self.pidfd.as_ref())
    }

    pub(super) fn id(&self) -> u32 {
        self.child.as_ref().expect(HELD).id()
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.parts().0.kill()
    }

    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.parts().0.try_wait()
    }

    /// Waits for the end of the child. None once the deadline is reached.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Option<ExitStatus>> {
        if let Some(status) = self.try_wait()? {
            wait::charge();
            return Ok(Some(status));
        }
        match self.parts() {
            (child, Some(pidfd)) => pidfd.run_until(Direction::Read, deadline, || {
                child.try_wait()?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
            }),
            (child, None) if !wait::may_end_early() && deadline.is_none() => child.wait().map(Some),
            (child, None) => look_until(deadline, || child.try_wait()),
        }
    }
}

/// Why a handle always has its child.
const HELD: &str = "a child is held until its handle is dropped";

impl Drop for ChildHandle {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // An error means that there is no such child: it was waited for by other means.
        let is_running = matches!(child.try_wait(), Ok(None));
        if is_running && self.kill_on_drop {
            // It fails for a child that has become another user's, which then goes on.
            let _ = child.kill();
        }
        if is_running {
            reap(child);
        }
    }
}
