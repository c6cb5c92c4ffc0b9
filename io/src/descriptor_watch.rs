//! Tells wakers when a descriptor is ready: the part of `fibra::Readiness` that knows the reactor.
//!
//! It owns a duplicate of the user's descriptor, as [`Pollable`](crate::Pollable) does and for its reasons.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use crate::pollable::explain;
use crate::sys::{self, Direction};
use crate::waiting::attempt::Attempt;
use crate::waiting::descriptor::Descriptor;
use crate::waiting::edge_wait::EdgeWait;

/// Tells wakers when a descriptor is ready.
pub struct DescriptorWatch {
    /// Before `io`, so that no wait is left when it is deregistered.
    readable: Mutex<EdgeWait>,
    writable: Mutex<EdgeWait>,
    io: Descriptor<OwnedFd>,
}

impl DescriptorWatch {
    /// Duplicates the descriptor, and registers it with the reactor of the caller's worker.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it cannot be waited for, `Unsupported` if the caller has no reactor, or the system's error.
    pub fn new(fd: impl AsFd) -> io::Result<DescriptorWatch> {
        let io = Descriptor::new(fd.as_fd().try_clone_to_owned()?, false);
        io.registered().attach_anywhere(io.fd().as_raw_fd(), None).map_err(explain)?;
        let [readable, writable] = [Direction::Read, Direction::Write].map(EdgeWait::new).map(Mutex::new);
        Ok(DescriptorWatch { readable, writable, io })
    }

    /// Returns whether a read finds something. If not, the waker of the last such poll is called once it may.
    ///
    /// # Errors
    ///
    /// `Unsupported` if neither the caller nor the descriptor has a reactor any more, or the system's error.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(&self.readable, context)
    }

    /// Returns whether a write finds room. If not, the waker of the last such poll is called once it may.
    ///
    /// # Errors
    ///
    /// As [`poll_readable`](DescriptorWatch::poll_readable).
    pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(&self.writable, context)
    }

    fn poll(&self, wait: &Mutex<EdgeWait>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut wait = wait.lock().unwrap_or_else(PoisonError::into_inner);
        let direction = wait.direction();
        loop {
            // Also of a wait that has begun: the task may have changed its worker.
            let reliance = self.io.registered().attach_anywhere(self.io.fd().as_raw_fd(), None)?;
            let mut look = || sys::look(self.io.fd(), direction).map(Attempt::Done);
            if let Some(outcome) = self.io.source().attempt(direction, &mut look) {
                return Poll::Ready(outcome);
            }
            ready!(wait.poll(self.io.source(), reliance.set_id, context));
        }
    }
}
