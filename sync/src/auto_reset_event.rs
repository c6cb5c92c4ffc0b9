//! An event that lets one through for each time it is set: permits of which there is at most one (`permits.rs`).

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::channel::selectable::Line;
use crate::permits::{Permits, Served};
use crate::turn::{self, Queue, Turn};
use crate::wait::list::Node;
use crate::wait::{self, Claim, RawWake};

/// An event that lets one waiter through for each [`set`](AutoResetEvent::set), and closes behind it.
///
/// A set that finds nobody waiting is kept for the next one who comes, once: a second set before that adds nothing. To let
/// everybody through use [`ManualResetEvent`](crate::ManualResetEvent), to count the sets use
/// [`Semaphore`](crate::Semaphore).
///
/// # Fairness
/// First come, first served. A set is handed to the longest waiter, and nobody who comes later can take it away.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use fibra_sync as sync;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let turns = Arc::new([const { sync::AutoResetEvent::new(false) }; 2]);
/// let theirs = Arc::clone(&turns);
/// let partner = fibra::spawn(move || {
///     theirs[0].wait();
///     theirs[1].set();
/// });
/// turns[0].set();
/// turns[1].wait();
/// assert!(!turns[1].is_set());
/// partner.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The algorithm is that of Vélez's gate, open or closed, and of Preshing's auto-reset event, whose status is 1 when set and
/// −N with N waiting: here the list counts them.
pub struct AutoResetEvent {
    state: Permits,
}

impl AutoResetEvent {
    /// Makes an event that is set, or not.
    pub const fn new(set: bool) -> Self {
        AutoResetEvent { state: Permits::new(set as usize) }
    }

    /// True while a set is kept for the next one who comes. It may be gone when the answer is there.
    pub fn is_set(&self) -> bool {
        self.state.free() > 0
    }

    /// Lets the longest waiter through, or the next one who comes.
    #[inline]
    pub fn set(&self) {
        if let Some(Served { first: Some(wake), .. }) = self.state.put(|_| 1) {
            wake.wake();
        }
    }

    /// Takes a set back that nobody has used.
    pub fn reset(&self) {
        self.state.remove(1);
    }

    /// Goes through if the event is set and nobody waits. True if it did.
    pub fn try_wait(&self) -> bool {
        self.state.take(1)
    }

    /// Waits for a set of its own.
    ///
    /// # Cancellation
    /// A cancellation point. Whoever unwinds has used no set.
    #[inline(always)]
    pub fn wait(&self) {
        self.wait_to(|| None);
    }

    /// Waits for a set of its own, but no longer than `timeout`. True if it came; if not, none was used.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_to(|| time::deadline(timeout))
    }

    /// Waits for a set of its own, but not beyond `deadline`. True if it came; if not, none was used.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait_deadline(&self, deadline: Instant) -> bool {
        self.wait_to(|| Some(deadline))
    }

    /// Waits for a set of its own, as a future, for `async` code. It stands in the queue from its first poll on.
    ///
    /// # Cancellation
    /// Dropped before its end it leaves the queue, and a set that it was given meanwhile goes to the next one.
    pub async fn wait_async(&self) {
        turn::charge().await;
        if !self.try_wait() {
            turn::wait_async(self, 1, |_| ()).await;
        }
    }

    #[inline(always)]
    fn wait_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> bool {
        self.wait_shortly() || Turn::new(self, 1).wait(deadline())
    }

    /// True if no sleep was needed.
    fn wait_shortly(&self) -> bool {
        let may_spin = wait::checkpoint_before_spin();
        // Behind others there is no use in spinning.
        self.try_wait() || (may_spin && self.state.is_quiet() && wait::spin_until(|| self.try_wait()))
    }
}

impl Queue for AutoResetEvent {
    /// One, always.
    type Asks = usize;

    unsafe fn enlist(&self, node: &Node<usize>, wake: RawWake) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.state.enlist(node, wake) }
    }

    unsafe fn withdraw(&self, node: &Node<usize>) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.state.withdraw(node) }
    }

    fn pass_on(&self, _one: &usize) {
        self.set();
    }

    fn departed(&self) {
        // All ask for the same, so nobody was in the way of another; but the last one may have left.
        if let Some(wake) = self.state.serve().first {
            wake.wake();
        }
    }
}

impl Line for AutoResetEvent {
    fn asks() -> usize {
        1
    }

    fn take_now(&self) -> bool {
        self.try_wait()
    }

    unsafe fn enlist_for(&self, node: &Node<usize>, wake: RawWake, claim: &Claim, arm: usize) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.state.enlist_for(node, wake, claim, arm) }
    }
}

// No code of users runs while it changes, so a panic leaves it whole.
impl UnwindSafe for AutoResetEvent {}
impl RefUnwindSafe for AutoResetEvent {}

impl fmt::Debug for AutoResetEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AutoResetEvent").field("set", &self.is_set()).finish_non_exhaustive()
    }
}
