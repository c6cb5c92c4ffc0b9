//! An open descriptor that tasks can wait for: the inner value of every socket.
//!
//! It owns one of std's types, its [`Source`], and the non-blocking mode that the user has set. A
//! drop deregisters first, and so does taking the std value out. An epoll registration belongs to
//! the open file and outlives a closed descriptor as long as a clone lives. Its events would name a
//! number that may have another owner by then.

#![forbid(unsafe_code)]

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::attempt::Attempt;
use super::registration::Registered;
use crate::readiness::source::Source;

/// See the [module](self).
pub(crate) struct Descriptor<S: AsFd> {
    /// Before `inner`: fields are dropped in order.
    link: Link,
    /// The mode that the user has set. Kept here, since clones share the mode of the open file.
    nonblocking: AtomicBool,
    /// See [`recheck_writes`](Descriptor::recheck_writes).
    rechecks_writes: bool,
    /// See [`short_reads_drain`](Descriptor::short_reads_drain).
    short_reads_drain: bool,
    inner: S,
}

impl<S: AsFd> Descriptor<S> {
    pub(crate) fn new(inner: S, nonblocking: bool) -> Descriptor<S> {
        let fd = inner.as_fd().as_raw_fd();
        let link = Link { registered: Registered::new(fd), fd };
        let nonblocking = AtomicBool::new(nonblocking);
        Descriptor { link, nonblocking, rechecks_writes: false, short_reads_drain: false, inner }
    }

    /// Wraps another descriptor of this open file, with this one's properties.
    ///
    /// From now on each has a mode of its own.
    pub(crate) fn with_clone(&self, clone: S) -> Descriptor<S> {
        Descriptor {
            rechecks_writes: self.rechecks_writes,
            short_reads_drain: self.short_reads_drain,
            ..Descriptor::new(clone, self.is_nonblocking())
        }
    }

    /// Sets whether a wait to write rechecks now and then, for events that the kernel does not report.
    pub(crate) fn recheck_writes(mut self, recheck: bool) -> Descriptor<S> {
        self.rechecks_writes = recheck;
        self
    }

    pub(crate) fn rechecks_writes(&self) -> bool {
        self.rechecks_writes
    }

    /// Sets whether a short read means that the descriptor is drained.
    ///
    /// Bits of the readiness word may say otherwise.
    pub(crate) fn short_reads_drain(mut self, drain: bool) -> Descriptor<S> {
        self.short_reads_drain = drain;
        self
    }

    /// Returns the outcome of a read of `n` bytes into a buffer of `len`.
    #[inline]
    pub(crate) fn have_read(&self, n: usize, len: usize) -> Attempt<usize> {
        // No bytes mean the end of the stream, which the next call finds again.
        match self.short_reads_drain && n > 0 && n < len {
            true => Attempt::Drained(n),
            false => Attempt::Done(n),
        }
    }

    /// Returns the std value, for calls that neither wait nor take it.
    #[inline]
    pub(crate) fn inner(&self) -> &S {
        &self.inner
    }

    /// Deregisters, and returns the std value.
    pub(crate) fn into_inner(self) -> S {
        let Descriptor { link, inner, .. } = self;
        drop(link);
        inner
    }

    #[inline]
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }

    #[inline]
    pub(crate) fn source(&self) -> &Arc<Source> {
        self.link.registered.source()
    }

    #[inline]
    pub(crate) fn registered(&self) -> &Registered {
        &self.link.registered
    }

    #[inline]
    pub(crate) fn is_nonblocking(&self) -> bool {
        // Relaxed: a mode, which publishes nothing.
        self.nonblocking.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) {
        // Relaxed: see `is_nonblocking`.
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
    }
}

impl<S: AsFd + fmt::Debug> fmt::Debug for Descriptor<S> {
    /// Prints the std value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

// A panic between two calls leaves nothing half done: the state behind these is the kernel's and
// single words.
impl<S: AsFd> UnwindSafe for Descriptor<S> {}
impl<S: AsFd> RefUnwindSafe for Descriptor<S> {}

/// The source of an open descriptor, which is deregistered when this is dropped.
struct Link {
    registered: Registered,
    /// Open as long as this value lives.
    fd: RawFd,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.registered.detach(self.fd);
    }
}
