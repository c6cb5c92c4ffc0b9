//! An event that stays set and wakes all, until it is reset.
//!
//! Flag and list are under one lock, and a reader that finds the flag set takes no lock. A set unlinks everybody under
//! the lock and wakes them after it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fibra_runtime::wait::list::{List, Node};
use fibra_runtime::wait::{self, Asleep, Lock, WaitStrategy, WakeHandle, Waking, Withdrawal};

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
    waiters: Lock<List>,
}

impl ManualResetEvent {
    /// Makes an event that is set, or not.
    pub const fn new(set: bool) -> Self {
        ManualResetEvent { set: AtomicBool::new(set), waiters: Lock::new(List::new()) }
    }

    /// True while the event is set.
    pub fn is_set(&self) -> bool {
        // Acquire: pairs with the Release in `set`: what was done before the set is seen after the wait.
        self.set.load(Ordering::Acquire)
    }

    /// Sets the event and wakes all who wait.
    pub fn set(&self) {
        let mut all = {
            let mut waiters = self.waiters.lock();
            // Release: pairs with `is_set`.
            self.set.store(true, Ordering::Release);
            std::mem::take(&mut *waiters)
        };
        // Outside the lock. Their sleepers answer `Served` from here on and stay until they are woken.
        while let Some(wake) = all.pop_front() {
            wake.wake();
        }
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
        let until = UntilSet { event: self, node: Node::new() };
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
    node: Node,
}

impl WaitStrategy for UntilSet<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut waiters = self.event.waiters.lock();
        if self.event.is_set() {
            return Asleep::Rouse;
        }
        // SAFETY: the node stays until the sleep is over, is in no list, and is only touched under this lock; its wake
        // is taken out of it under the lock, or belongs to a list that was.
        unsafe { waiters.push_back(&self.node, me.raw()) };
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        // SAFETY: the node is in this list or in none.
        match unsafe { self.event.waiters.lock().remove(&self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }
}
