//! The condition variable.

pub(crate) mod wait_set;

use std::cell::Cell;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use fibra_runtime::time;

use lock_api::GuardNoSend;
use wait_set::{Audience, WaitSet};

use crate::mutex::RawMutex;
use crate::mutex::core::Waiter;
use crate::mutex::state::Arrival;
use crate::wait::list::Node;
use crate::wait::{self, Asleep, WaitStrategy, WakeHandle, Waking, Withdrawal};

pub use lock_api::WaitTimeoutResult;

/// Lets the owner of a [`Mutex`](crate::Mutex) wait for a condition of its value.
///
/// `wait` unlocks the mutex and blocks in one step, and has the mutex locked again when it returns. The interface is that of
/// [`lock_api::Condvar`]: `wait`, `wait_for`, `wait_until`, `wait_while` and its timed forms, `notify_one` and `notify_all`,
/// which return how many they have notified.
///
/// A wait without a deadline only ends when it was notified: there are no spurious wake-ups. Another owner may have changed
/// the value before, so a loop around the wait, or `wait_while`, stays necessary. `notify_one` without waiters does nothing and
/// costs one load.
///
/// # Fairness
/// Waiters are notified in the order of arrival. A notified waiter goes to the end of the mutex's wait queue without being
/// woken, and is served from there: `notify_all` does not wake a herd for a mutex that one of them can have.
///
/// # Cancellation
/// The waits are cancellation points. The mutex is locked again before the task unwinds. A task that was notified and
/// cancelled at once has been notified: it returns, and unwinds at its next cancellation point.
///
/// There is no `async` form, since there is none of the [`Mutex`](crate::Mutex#differences-from-std) that it unlocks.
///
/// # Errors
/// The result of a timed wait says `timed_out` only if no notification went to the waiter: none is lost to a deadline.
///
/// # Panics
/// A wait panics while others wait with another mutex; the guard is still locked then. Without waiters another mutex may be
/// used.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use fibra_sync as sync;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let shared = Arc::new((sync::Mutex::new(false), sync::Condvar::new()));
/// let other = Arc::clone(&shared);
/// let starter = fibra::spawn(move || {
///     *other.0.lock() = true;
///     other.1.notify_one();
/// });
/// let mut started = shared.0.lock();
/// shared.1.wait_while(&mut started, |started| !*started);
/// assert!(*started);
/// # drop(started);
/// # starter.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub type Condvar = lock_api::Condvar<RawCondvar>;

/// The condition variable under a [`Condvar`], without its guards.
pub struct RawCondvar {
    waiters: WaitSet,
}

impl RawCondvar {
    /// Waits with the mutex unlocked. Returns true if the time ran out.
    ///
    /// # Safety
    /// The caller has `mutex` locked.
    #[inline(always)]
    #[track_caller]
    unsafe fn wait_to(&self, mutex: &RawMutex, deadline: Option<Instant>) -> bool {
        wait::cancellation_point();
        let node = Node::with(Waiter::new(wait::waiter_address()));
        node.data().home.set(wait::home());
        let entry = Entry { waiters: &self.waiters, mutex, node: &node, refused: Cell::new(false) };
        let why = wait::sleep(&entry, deadline);
        if entry.refused.get() {
            panic!(
                "a Condvar is waited on with a second Mutex while others wait with the first: use one for each"
            )
        }
        wait::take_back(|| match why {
            Waking::Notified => mutex.relock(&node),
            Waking::TimedOut | Waking::Cancelled => _ = mutex.compete(&node, Arrival::New, None),
        });
        if why == Waking::Cancelled {
            wait::unwind_cancelled()
        }
        why == Waking::TimedOut
    }
}

// SAFETY: a waiter is in the queue before it unlocks, so a notification after the unlock finds it. It returns and unwinds with
// the mutex locked by `compete`, which neither fails without a deadline nor unwinds. The guard has no state.
unsafe impl lock_api::RawCondvar for RawCondvar {
    const INIT: Self = RawCondvar { waiters: WaitSet::new() };

    type RawMutex = RawMutex;

    #[inline(always)]
    #[track_caller]
    unsafe fn wait(&self, mutex: &RawMutex, _guard: &mut GuardNoSend) {
        // SAFETY: by this function's contract.
        unsafe { self.wait_to(mutex, None) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.waiters.notify(Audience::One) == 1
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.waiters.notify(Audience::All)
    }
}

// SAFETY: as for `RawCondvar`.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        time::deadline(*timeout)
    }

    #[track_caller]
    unsafe fn wait_until(&self, mutex: &RawMutex, _guard: &mut GuardNoSend, deadline: &Instant) -> bool {
        // SAFETY: by this function's contract.
        unsafe { self.wait_to(mutex, Some(*deadline)) }
    }
}

// A waiter that unwinds has left the queue, so a panic leaves it whole.
impl UnwindSafe for RawCondvar {}
impl RefUnwindSafe for RawCondvar {}

impl fmt::Debug for RawCondvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCondvar").finish_non_exhaustive()
    }
}

/// One sleep in the queue of the condition, and then in that of the mutex.
struct Entry<'a> {
    waiters: &'a WaitSet,
    mutex: &'a RawMutex,
    node: &'a Node<Waiter>,
    /// There are waiters with another mutex. This one is still locked.
    refused: Cell<bool>,
}

impl WaitStrategy for Entry<'_> {
    #[inline(never)]
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: node and mutex outlive the sleep, before whose end the node has left the queue or its wake has landed; the
        // wake is dropped unused, or taken out under the lock of the list that it is in.
        if !unsafe { self.waiters.join(self.node, me.raw(), self.mutex.core()) } {
            self.refused.set(true);
            return Asleep::Rouse;
        }
        // This may wake this very waiter, if it was notified since it joined: its wake is kept for it.
        self.mutex.release();
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        // SAFETY: only a refused waiter has not joined, and that one was roused.
        match unsafe { self.waiters.leave(self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }

    fn may_spin(&self) -> bool {
        true
    }
}
