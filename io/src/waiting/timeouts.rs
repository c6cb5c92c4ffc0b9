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
        $crate::waiting::timeouts::deadline_methods!("read", set_read_deadline, read_deadline, $ours: $it => $limit);
    };
    (write $ours:ident: $it:ident => $limit:expr) => {
        $crate::waiting::timeouts::deadline_methods!("write", set_write_deadline, write_deadline, $ours: $it => $limit);
    };
    ($transfer:literal, $set:ident, $get:ident, $ours:ident: $it:ident => $limit:expr) => {
        impl $ours {
            #[doc = concat!("Sets the moment until which all ", $transfer, "s wait; `None`, the default, is for ever.")]
            ///
            #[doc = concat!("It bounds a whole request or answer, however many ", $transfer, "s that takes.")]
            ///
            #[doc = concat!("A ", $transfer, " that would wait beyond it fails with `WouldBlock`, as with a timeout.")]
            /// The earlier of deadline and timeout counts.
            #[doc = concat!("A ", $transfer, " that need not wait succeeds at any time.")]
            #[doc = concat!("A ", $transfer, " that waits already keeps the deadline that it started with.")]
            /// std has no deadlines, so std types made from this value have none.
            pub fn $set(&self, deadline: Option<std::time::Instant>) {
                let $it = self;
                $limit.set_deadline(deadline);
            }

            #[doc = concat!("Returns the moment until which ", $transfer, "s wait.")]
            pub fn $get(&self) -> Option<std::time::Instant> {
                let $it = self;
                $limit.deadline()
            }
        }
    };
}

pub(crate) use deadline_methods;
