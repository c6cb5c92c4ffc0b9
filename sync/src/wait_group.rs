//! Waits for a group of workers; the state is in `countdown.rs`, the guards are here.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::countdown::{Added, Countdown, Signalled, Zero};
use crate::messages::shown;
use crate::wait::{self, WaitDescription};

static WAIT_GROUP: WaitDescription = WaitDescription::new("wait group");

/// Counts busy workers, and lets callers wait until there are none.
///
/// It is counted by hand, with [`add`](WaitGroup::add) and [`done`](WaitGroup::done) as Go's is, or by guards that are done
/// when they are dropped, also by a panic or a cancellation: [`worker`](WaitGroup::worker) for a scope, and
/// [`worker_owned`](WaitGroup::worker_owned) for spawned tasks. It may be used again and again.
///
/// # Fairness
/// The last worker that is done wakes all waiters, first in, first out. The first time that the count is
/// zero ends a wait, also when workers are added right after.
///
/// # Differences from Go's and crossbeam's
/// A worker may be added while waiters are being woken, and delays none of them. Where crossbeam's is
/// cloned, here a guard is taken, and a waiter need not be a worker itself.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use fibra_sync as sync;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let group = Arc::new(sync::WaitGroup::new());
/// for _ in 0..10 {
///     let busy = Arc::clone(&group).worker_owned();
///     fibra::spawn(move || {
///         fibra::yield_now();
///         drop(busy);
///     });
/// }
/// group.wait();
/// assert_eq!(group.count(), 0);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct WaitGroup {
    pub(crate) state: Countdown,
}

/// Keeps one worker of a [`WaitGroup`] busy until it is dropped.
#[must_use = "dropped at once it is done at once"]
#[derive(Debug)]
pub struct WaitGroupGuard<'a> {
    group: &'a WaitGroup,
}

/// Counts one busy worker of a [`WaitGroup`] until it is dropped, and owns the group.
#[must_use = "dropped at once it is done at once"]
#[derive(Debug)]
pub struct OwnedWorker {
    group: Arc<WaitGroup>,
}

impl WaitGroup {
    /// Makes a group without workers.
    pub const fn new() -> Self {
        WaitGroup { state: Countdown::new(0) }
    }

    /// Returns how many workers are busy.
    pub fn count(&self) -> usize {
        wait::charge();
        self.state.count() as usize
    }

    /// Counts `count` workers in.
    ///
    /// Call it before they are spawned: a waiter does not wait for workers that are not counted yet.
    ///
    /// # Panics
    /// Panics if there would be more than a `usize` can count.
    #[track_caller]
    pub fn add(&self, count: usize) {
        let added = self.state.add(count as u64, Zero::Reusable);
        assert!(added == Added::Counted, "a wait group of more than usize::MAX workers");
    }

    /// Counts one worker out. The last one wakes all waiters.
    ///
    /// # Panics
    /// Panics if none is counted in.
    #[track_caller]
    pub fn done(&self) {
        match self.state.signal(1) {
            Signalled::Counted | Signalled::Last => {}
            Signalled::TooMany => panic!("a wait group below zero: more workers are done than were added"),
        }
    }

    /// Counts one worker in, and out when the guard is dropped.
    pub fn worker(&self) -> WaitGroupGuard<'_> {
        self.add(1);
        WaitGroupGuard { group: self }
    }

    /// Counts one worker in, and out when the guard is dropped.
    ///
    /// The guard may be sent to a spawned task.
    pub fn worker_owned(self: Arc<Self>) -> OwnedWorker {
        self.add(1);
        OwnedWorker { group: self }
    }

    /// Waits until no worker is busy.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait(&self) {
        self.state.wait_to(|| None, &WAIT_GROUP);
    }

    /// Waits until no worker is busy, at most for `timeout`. Returns true if none was.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let group = fibra_sync::WaitGroup::new();
    /// group.add(2);
    /// group.done();
    /// assert!(!group.wait_timeout(Duration::from_millis(1)));
    /// group.done();
    /// assert!(group.wait_deadline(Instant::now() + Duration::from_secs(60)));
    /// let busy = group.worker();
    /// assert_eq!(group.count(), 1);
    /// drop(busy);
    /// fibra_runtime::block_on(group.wait_async());
    /// group.wait();
    /// ```
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.state.wait_to(|| time::deadline(timeout), &WAIT_GROUP)
    }

    /// Waits until no worker is busy, or `deadline`; returns true if none was.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait_deadline(&self, deadline: Instant) -> bool {
        self.state.wait_to(|| Some(deadline), &WAIT_GROUP)
    }

    /// Waits until no worker is busy, as a future.
    ///
    /// # Cancellation
    /// May be dropped at any time.
    pub async fn wait_async(&self) {
        self.state.wait_async().await;
    }
}

impl Default for WaitGroup {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for WaitGroupGuard<'_> {
    fn drop(&mut self) {
        self.group.done();
    }
}

impl Drop for OwnedWorker {
    fn drop(&mut self) {
        self.group.done();
    }
}

shown!(WaitGroup: it => count: it.state.count());
