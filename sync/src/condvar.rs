//! The condition variable.

pub(crate) mod crowd;

use std::cell::Cell;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crowd::{Audience, Crowd};
use lock_api::GuardNoSend;

use crate::mutex::RawMutex;
use crate::mutex::core::Waiter;
use crate::mutex::state::Arrival;
use crate::wait::list::Node;
use crate::wait::{self, Asleep, WaitStrategy, WakeHandle, Waking, Withdrawal};

pub use lock_api::WaitTimeoutResult;

/// Lets the owner of a [`Mutex`](crate::Mutex) wait until others have made something true of the value.
///
/// `wait` unlocks the mutex and falls asleep in one step, and has it locked again when it returns. The interface is that of
/// [`lock_api::Condvar`]: `wait`, `wait_for`, `wait_until`, `wait_while` and its timed forms, `notify_one` and `notify_all`,
/// which tell how many they have notified.
///
/// A wait without a deadline only ends when it was notified: there are no spurious wake-ups. Another may have been at the
/// value before, so a loop around the wait, or `wait_while`, stays necessary. `notify_one` without waiters does nothing and costs
/// one load.
///
/// # Fairness
/// Waiters are notified in the order in which they came. Who is notified goes to the end of the mutex's waiters without
/// being woken, and is served as they are: `notify_all` does not rouse a herd into a lock that one of them can have.
///
/// # Cancellation
/// The waits are cancellation points. The mutex is locked again before the task unwinds. A task that was notified and
/// cancelled at once has been notified: it returns, and unwinds at its next cancellation point.
///
/// There is no `async` form, since there is none of the [`Mutex`](crate::Mutex#differences-from-std) that it unlocks.
///
/// # Errors
/// `timed_out` of the timed forms' result is true only for one that no notification went to: none is ever lost to a
/// deadline.
///
/// # Panics
/// The waits panic when others wait with another mutex; the guard is still locked then. Once nobody waits another may be used.
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

/// What a [`Condvar`] is made of.
pub struct RawCondvar {
    crowd: Crowd,
}

impl RawCondvar {
    /// Waits with the mutex unlocked. True if the time ran out.
    ///
    /// # Safety
    /// The caller has `mutex` locked.
    #[inline(always)]
    #[track_caller]
    unsafe fn wait_to(&self, mutex: &RawMutex, deadline: Option<Instant>) -> bool {
        wait::cancellation_point();
        let node = Node::with(Waiter::new(wait::waiter_address()));
        node.data().home.set(wait::home());
        let nap = Nap { crowd: &self.crowd, mutex, node: &node, refused: Cell::new(false) };
        let why = wait::sleep(&nap, deadline);
        if nap.refused.get() {
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

// SAFETY: a waiter is in the crowd before it unlocks, so who notifies after the unlock finds it; it returns and unwinds with
// the mutex locked by `compete`, which neither fails without a deadline nor unwinds. The guard has no state.
unsafe impl lock_api::RawCondvar for RawCondvar {
    const INIT: Self = RawCondvar { crowd: Crowd::new() };

    type RawMutex = RawMutex;

    #[inline(always)]
    #[track_caller]
    unsafe fn wait(&self, mutex: &RawMutex, _guard: &mut GuardNoSend) {
        // SAFETY: by this function's contract.
        unsafe { self.wait_to(mutex, None) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.crowd.notify(Audience::One) == 1
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.crowd.notify(Audience::All)
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

// Who unwinds out of a wait has left the crowd, so a panic leaves it whole.
impl UnwindSafe for RawCondvar {}
impl RefUnwindSafe for RawCondvar {}

impl fmt::Debug for RawCondvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCondvar").finish_non_exhaustive()
    }
}

/// One sleep in the crowd, and in the line after it.
struct Nap<'a> {
    crowd: &'a Crowd,
    mutex: &'a RawMutex,
    node: &'a Node<Waiter>,
    /// Others wait with another mutex; this one is still locked.
    refused: Cell<bool>,
}

impl WaitStrategy for Nap<'_> {
    #[inline(never)]
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: node and mutex outlive the sleep, before whose end the node has left the crowd or its wake has landed; the
        // wake is dropped unused, or taken out under the lock of the list that it is in.
        if !unsafe { self.crowd.join(self.node, me.raw(), self.mutex.core()) } {
            self.refused.set(true);
            return Asleep::Rouse;
        }
        // The one who is woken here may be this very sleeper, that was notified since it joined: its wake is kept for it.
        self.mutex.release();
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        // SAFETY: only who was refused has not joined, and such a one was roused.
        match unsafe { self.crowd.leave(self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }

    fn may_spin(&self) -> bool {
        true
    }
}
