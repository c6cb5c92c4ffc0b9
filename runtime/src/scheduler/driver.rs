//! The driver seam: how a worker waits for the outside world.
//!
//! Every worker owns one driver, made on its own thread by the [`Factory`] that the builder was
//! given. The runtime knows no sockets and the driver knows no queues: it hands over what became
//! ready, the worker queues it. A caller that waits for something of a driver finds the driver by
//! [`current`](crate::driver::current), a typed slot that the runtime keeps without knowing the
//! type.

#![forbid(unsafe_code)]

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::sync::{Parker, Unparker};

use crate::waiter::kind::RawWake;

/// Waits for the outside world on behalf of one worker.
///
/// An I/O crate implements it; `fibra` brings one over epoll and its like.
pub trait Driver: Send + 'static {
    /// Waits up to `timeout` and appends every waiter that became ready to `ready`.
    ///
    /// `Some(ZERO)` only polls, `None` waits until unparked. Resumes no task and touches no queue.
    /// Spurious returns are fine, a lost event is not.
    ///
    /// # Errors
    /// When the operating system refuses to wait at all; the worker cannot go on then and the process aborts.
    fn park(&mut self, timeout: Option<Duration>, ready: &mut Ready) -> io::Result<()>;

    /// Returns the handle that breaks `park` from any thread.
    ///
    /// An unpark that comes first makes the next park return at once.
    fn unparker(&self) -> Arc<dyn Unpark>;

    /// Returns when a poll finds something next, by the paused clock of a simulation.
    fn next_arrival(&self) -> Option<Instant> {
        None
    }
}

/// Breaks a driver's `park`.
pub trait Unpark: Send + Sync + 'static {
    /// Makes the present `park` return, or else the next one.
    fn unpark(&self);
}

/// Lists the waiters that a driver found ready.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let ready = fibra::driver::Ready::new();
/// assert!(ready.is_empty());
/// assert_eq!(ready.len(), 0);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default)]
pub struct Ready(Vec<RawWake>);

impl Ready {
    /// Makes an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one waiter.
    pub fn push(&mut self, wake: RawWake) {
        self.0.push(wake);
    }

    /// Returns the number of waiters.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true when no waiter became ready.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all wakes, in their order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = RawWake> {
        self.0.drain(..)
    }
}

/// Holds what a factory makes for one worker.
pub struct Parts {
    /// The driver of the worker.
    pub driver: Box<dyn Driver>,
    /// The handle that [`current`](crate::driver::current) returns on that worker.
    pub handle: Arc<dyn Any + Send + Sync>,
    /// The id that [`current_id`](crate::driver::current_id) returns: an [`Id::fresh`] of this
    /// driver's own.
    pub id: Id,
}

/// Tells one driver from all others of the process, also from those that are gone.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::driver::Id;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let (first, second) = (Id::fresh(), Id::fresh());
/// assert!(first != second && first.number() != 0);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Id(u64);

impl Id {
    /// Makes an id that no driver has yet.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only the uniqueness of the number counts.
        Id(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number behind the id: never zero, and far from the largest.
    #[inline]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Makes the driver of each worker, on the worker's own thread.
pub trait Factory: Send + Sync + 'static {
    /// Makes the driver of the worker that calls it.
    ///
    /// # Errors
    /// When the operating system has no more descriptors; building the runtime then fails with this error.
    fn make(&self) -> io::Result<Parts>;
}

impl<F> Factory for F
where
    F: Fn() -> io::Result<Parts> + Send + Sync + 'static,
{
    fn make(&self) -> io::Result<Parts> {
        self()
    }
}

/// The driver of runtimes without I/O, which only parks the thread.
pub(crate) struct NoIo(Parker);

/// Makes [`NoIo`] drivers.
pub(crate) fn no_io() -> io::Result<Parts> {
    Ok(Parts { driver: Box::new(NoIo(Parker::new())), handle: Arc::new(()), id: Id::fresh() })
}

impl Driver for NoIo {
    fn park(&mut self, timeout: Option<Duration>, _ready: &mut Ready) -> io::Result<()> {
        match timeout {
            Some(timeout) => self.0.park_timeout(timeout),
            None => self.0.park(),
        }
        Ok(())
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::new(NoIoUnparker(self.0.unparker().clone()))
    }
}

struct NoIoUnparker(Unparker);

impl Unpark for NoIoUnparker {
    fn unpark(&self) {
        self.0.unpark();
    }
}
