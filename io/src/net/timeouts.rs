//! The read and write timeouts of one open socket.
//!
//! In std they are options of the open socket in the kernel, so clones share them. Our calls never block in the
//! kernel, so we have to keep time ourselves, and asking for the option at each wait would be one more system call. Hence
//! they are kept here, shared by the clones that `try_clone` makes. The kernel's option is set as well, so that std types
//! and raw descriptors made from our sockets agree; and it is read back when a socket is made from one.

#![forbid(unsafe_code)]

use std::time::Duration;

use crate::primitive::{AtomicU64, Ordering};

/// No timeout.
const NONE: u64 = 0;

/// See the [module](self). In nanoseconds, at most some 584 years.
#[derive(Debug, Default)]
pub(crate) struct Timeouts {
    read: Timeout,
    write: Timeout,
}

impl Timeouts {
    pub(crate) fn new(read: Option<Duration>, write: Option<Duration>) -> Timeouts {
        let timeouts = Timeouts::default();
        timeouts.read.set(read);
        timeouts.write.set(write);
        timeouts
    }

    pub(crate) fn read(&self) -> &Timeout {
        &self.read
    }

    pub(crate) fn write(&self) -> &Timeout {
        &self.write
    }
}

/// One of the two.
#[derive(Debug, Default)]
pub(crate) struct Timeout(AtomicU64);

impl Timeout {
    pub(crate) fn get(&self) -> Option<Duration> {
        // Relaxed: the value is all there is to it.
        match self.0.load(Ordering::Relaxed) {
            NONE => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    /// Sets it; a zero is taken for none, and the caller has refused it before.
    pub(crate) fn set(&self, timeout: Option<Duration>) {
        let nanos = timeout.map_or(NONE, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        // Relaxed: see `get`.
        self.0.store(nanos, Ordering::Relaxed);
    }
}
