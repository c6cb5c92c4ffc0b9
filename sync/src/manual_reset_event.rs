//! An event that stays set and wakes all, until it is reset.
//!
//! A reader that finds the flag set takes no lock. Round and list are under one lock: each set ends a round, and wakes
//! all who came in it, a batch at a time; who comes after a reset belongs to the next round and is not woken by a set
//! that is still under way.

use crate::primitive::{AtomicBool, Ordering};
use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant};

use crate::wait::list::{List, Node};
use crate::wait::{self, Asleep, Lock, WaitStrategy, WakeHandle, Waking, Withdrawal};

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
    set: AtomicBool,
    waiters: Lock<Waiters>,
}

struct Waiters {
    /// How many sets there were.
    round: u64,
    /// Each with the round that it came in.
    list: List<Cell<u64>>,
}

impl ManualResetEvent {
    /// Makes an event that is set, or not.
    pub const fn new(set: bool) -> Self {
        ManualResetEvent {
            set: AtomicBool::new(set),
            waiters: Lock::new(Waiters { round: 0, list: List::new() }),
        }
    }

    /// True while the event is set.
    pub fn is_set(&self) -> bool {
        // Acquire: pairs with the Release in `set`: what was done before the set is seen after the wait.
        self.set.load(Ordering::Acquire)
    }

    /// Sets the event and wakes all who wait.
    pub fn set(&self) {
        let round = {
            let mut waiters = self.waiters.lock();
            // Release: pairs with `is_set`.
            self.set.store(true, Ordering::Release);
            waiters.round += 1;
            waiters.round
        };
        wait::wake_all(&self.waiters, |waiters| waiters.list.pop_front_if(|came| came.get() < round));
    }

    /// Takes the event back: who waits from now on waits for the next [`set`](ManualResetEvent::set).
    pub fn reset(&self) {
        // Under the lock, so that a `set` is either before or after. Relaxed: nothing is published.
        let _waiters = self.waiters.lock();
        self.set.store(false, Ordering::Relaxed);
    }

    /// Waits until the event is set.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait(&self) {
        self.wait_to(None);
    }

    /// Waits until the event is set, but no longer than `timeout`. True if it was set.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        // Beyond what the clock can tell there is no deadline.
        self.wait_to(Instant::now().checked_add(timeout))
    }

    fn wait_to(&self, deadline: Option<Instant>) -> bool {
        if self.is_set() {
            wait::cancellation_point();
            wait::charge();
            return true;
        }
        let until = UntilSet { event: self, node: Node::with(Cell::new(0)) };
        match wait::sleep(&until, deadline) {
            Waking::Notified => true,
            Waking::TimedOut => false,
            Waking::Cancelled => wait::unwind_cancelled(),
        }
    }
}

impl fmt::Debug for ManualResetEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualResetEvent").field("set", &self.is_set()).finish_non_exhaustive()
    }
}

struct UntilSet<'a> {
    event: &'a ManualResetEvent,
    node: Node<Cell<u64>>,
}

impl WaitStrategy for UntilSet<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut waiters = self.event.waiters.lock();
        if self.event.is_set() {
            return Asleep::Rouse;
        }
        self.node.data().set(waiters.round);
        // SAFETY: the node stays until the sleep is over, is in no list, and is only touched under this lock; its wake is
        // taken out of it under the lock, and `before_awake` answers `Served` from then on.
        unsafe { waiters.list.push_back(&self.node, me.raw()) };
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        // SAFETY: the node is in this list or in none.
        match unsafe { self.event.waiters.lock().list.remove(&self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }
}
