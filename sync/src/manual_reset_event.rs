//! An event that stays set and wakes all, until it is reset.
//!
//! The state is in `gate.rs`: each set ends a round, and wakes all who came in it; who comes after a reset belongs to the next
//! round and is not woken by a set that is still under way.

use std::cell::Cell;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::channel::selectable::Line;
use crate::gate::Gate;
use crate::turn::{self, Queue, Turn};
use crate::wait::list::Node;
use crate::wait::{self, Claim, RawWake};

/// An event that, once set, lets everybody through until it is reset.
///
/// # Fairness
/// A [`set`](ManualResetEvent::set) wakes all who wait, in the order in which they came, also when a
/// [`reset`](ManualResetEvent::reset) follows at once.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use fibra_sync as sync;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let start = Arc::new(sync::ManualResetEvent::new(false));
/// let gate = Arc::clone(&start);
/// let runner = fibra::spawn(move || gate.wait());
/// start.set();
/// runner.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ManualResetEvent {
    gate: Gate,
}

impl ManualResetEvent {
    /// Makes an event that is set, or not.
    pub const fn new(set: bool) -> Self {
        ManualResetEvent { gate: Gate::new(set) }
    }

    /// True while the event is set.
    pub fn is_set(&self) -> bool {
        self.gate.is_set()
    }

    /// Sets the event and wakes all who wait.
    pub fn set(&self) {
        let ended = self.gate.set();
        wait::wake_all(self.gate.crowd(), |crowd| crowd.next(ended));
    }

    /// Takes the event back: who waits from now on waits for the next [`set`](ManualResetEvent::set).
    pub fn reset(&self) {
        self.gate.reset();
    }

    /// Waits until the event is set.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait(&self) {
        self.wait_to(|| None);
    }

    /// Waits until the event is set, but no longer than `timeout`. True if it was set.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_to(|| time::deadline(timeout))
    }

    /// Waits until the event is set, but not beyond `deadline`. True if it was set.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait_deadline(&self, deadline: Instant) -> bool {
        self.wait_to(|| Some(deadline))
    }

    /// Waits until the event is set, as a future, for `async` code.
    ///
    /// # Cancellation
    /// May be dropped at any time.
    pub async fn wait_async(&self) {
        match self.is_set() {
            true => turn::charge().await,
            false => turn::wait_async(self, Cell::new(0), |_| ()).await,
        }
    }

    fn wait_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> bool {
        wait::checkpoint();
        self.is_set() || Turn::new(self, Cell::new(0)).wait(deadline())
    }
}

impl Queue for ManualResetEvent {
    /// The round that the sleeper came in.
    type Asks = Cell<u64>;

    unsafe fn enlist(&self, node: &Node<Cell<u64>>, wake: RawWake) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.gate.join(node, wake) }
    }

    unsafe fn withdraw(&self, node: &Node<Cell<u64>>) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.gate.crowd().lock().leave(node) }
    }

    fn pass_on(&self, _: &Cell<u64>) {
        // All are let through: nobody misses what one did not use.
    }

    fn departed(&self) {
        // Nobody is in anybody's way.
    }
}

impl Line for ManualResetEvent {
    fn asks() -> Cell<u64> {
        Cell::new(0)
    }

    fn take_now(&self) -> bool {
        self.is_set()
    }

    unsafe fn enlist_for(&self, node: &Node<Cell<u64>>, wake: RawWake, claim: &Claim, arm: usize) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.gate.join_for(node, wake, claim, arm) }
    }
}

// No code of users runs while it changes, so a panic leaves it whole.
impl UnwindSafe for ManualResetEvent {}
impl RefUnwindSafe for ManualResetEvent {}

impl fmt::Debug for ManualResetEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualResetEvent").field("set", &self.is_set()).finish_non_exhaustive()
    }
}
