//! How long the reads and writes of one open socket wait.
//!
//! In std timeouts are options of the open socket in the kernel, so clones share them. Calls of this
//! crate never block in the kernel, so it keeps time itself. To read the option at each wait would
//! cost a system call. Hence timeouts are kept here, shared by the clones that `try_clone` makes. The
//! kernel's option is set as well, so that std types and raw descriptors made from these sockets
//! agree. It is read back when a socket is made from such a value.
//!
//! Deadlines are kept here alone: the kernel has none. Listeners and pipes have only deadlines.

#![forbid(unsafe_code)]

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fibra_runtime::clock;

use crate::sys::Direction;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Timeouts {
    read: Timeout,
    write: Timeout,
}

impl Timeouts {
    pub(crate) fn of(&self, direction: Direction) -> &Timeout {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }
}

/// Limits of one direction.
#[derive(Debug, Default)]
pub(crate) struct Timeout(Mutex<Limits>);

#[derive(Debug, Default)]
struct Limits {
    length: Option<Duration>,
    deadline: Option<Instant>,
}

impl Timeout {
    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> Option<Duration> {
        self.limits().length
    }

    /// Sets the timeout; see [`refuse_zero`].
    pub(crate) fn set(&self, timeout: Option<Duration>) {
        self.limits().length = timeout;
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.limits().deadline
    }

    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) {
        self.limits().deadline = deadline;
    }

    /// Returns how long a wait that begins now may take.
    pub(crate) fn left(&self) -> Option<Duration> {
        let Limits { length, deadline } = *self.limits();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        length.into_iter().chain(left).min()
    }
}

/// Fails with `InvalidInput` if the timeout is zero, as std does.
pub(crate) fn refuse_zero(timeout: Option<Duration>) -> io::Result<Option<Duration>> {
    match timeout {
        Some(Duration::ZERO) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "cannot set a 0 duration timeout"))
        }
        timeout => Ok(timeout),
    }
}

/// The methods for the deadlines of one type, which it keeps in a [`Timeout`].
macro_rules! deadline_methods {
    (read $ours:ident: $it:ident => $limit:expr) => {
        impl $ours {
            /// Sets the moment until which all reads wait; `None`, the default, is for ever.
            ///
            /// It bounds a whole request, however many reads that takes.
            ///
            /// A read that would wait beyond it fails with `WouldBlock`, as with a timeout. The
            /// earlier of deadline and timeout counts. Data that is there is read at any time. A read
            /// that waits already keeps the deadline that it started with. std has no deadlines, so
            /// std types made from this value have none.
            pub fn set_read_deadline(&self, deadline: Option<std::time::Instant>) {
                let $it = self;
                $limit.set_deadline(deadline);
            }

            /// Returns the moment until which reads wait.
            pub fn read_deadline(&self) -> Option<std::time::Instant> {
                let $it = self;
                $limit.deadline()
            }
        }
    };
    (write $ours:ident: $it:ident => $limit:expr) => {
        impl $ours {
            /// Sets the moment until which all writes wait; `None`, the default, is for ever.
            ///
            /// It bounds a whole answer, however many writes that takes.
            ///
            /// A write that would wait beyond it fails with `WouldBlock`, as with a timeout. The
            /// earlier of deadline and timeout counts. Data for which there is room is written at any
            /// time. A write that waits already keeps the deadline that it started with. std has no
            /// deadlines, so std types made from this value have none.
            pub fn set_write_deadline(&self, deadline: Option<std::time::Instant>) {
                let $it = self;
                $limit.set_deadline(deadline);
            }

            /// Returns the moment until which writes wait.
            pub fn write_deadline(&self) -> Option<std::time::Instant> {
                let $it = self;
                $limit.deadline()
            }
        }
    };
}

pub(crate) use deadline_methods;
