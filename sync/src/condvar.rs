//! The condition variable.

pub(crate) mod wait_set;

use std::time::{Duration, Instant};

use fibra_runtime::time;

use lock_api::GuardNoSend;
use wait_set::WaitSet;

use crate::budget;
use crate::messages::shown;
use crate::mutex::RawMutex;
use crate::mutex::core::{Given, Waiter};
use crate::mutex::state::Arrival;
use crate::wait::{self, Outcome, Until, WaitDescription};

pub use lock_api::WaitTimeoutResult;

/// Lets the owner of a [`Mutex`](crate::Mutex) wait for a condition of its value.
///
/// `wait` unlocks the mutex and blocks in one step, and has the mutex locked again when it returns. The interface is that of
/// [`lock_api::Condvar`]: `wait`, `wait_for`, `wait_until`, `wait_while` and its timed forms, `notify_one` and `notify_all`,
/// which return how many they have notified.
///
/// A wait without a deadline only ends when it was notified: there are no spurious wake-ups. Another owner may have changed
/// the value before, so a loop around the wait, or `wait_while`, stays necessary. `notify_one` without waiters does nothing in
/// about a nanosecond, and counts as a look: a loop over it lets other tasks run.
///
/// # Fairness
/// Waiters are notified in the order of arrival. The first one competes for the mutex at once, unless the mutex is locked and
/// another woken waiter is on its way. All others go to the end of the mutex's wait queue without being woken, and are served
/// from there: `notify_all` does not wake a herd for a mutex that one of them can have.
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
    waiters: WaitSet<Borrowed>,
}

/// The mutex of a waiter, which borrows it as long as it is in the set.
#[derive(Clone, Copy, PartialEq)]
struct Borrowed(*const RawMutex);

// SAFETY: a mutex is `Sync`, and `notify` alone reaches it.
unsafe impl Send for Borrowed {}

impl RawCondvar {
    /// Waits with the mutex, which the caller has locked, unlocked. Returns true if the time ran out.
    #[inline(always)]
    #[track_caller]
    fn wait_to(&self, mutex: &RawMutex, deadline: Option<Instant>) -> bool {
        wait::point();
        wait::cancellation_point();
        let waiter = Waiter::new(wait::waiter_address(), wait::current_worker());
        let until =
            Until::unwind_later(deadline).spinning().described(const { &WaitDescription::new("condvar") });
        // A worker goes on with its next task. A thread would leave its processor idle until the woken waiter runs.
        let is_thread = waiter.worker.is_none();
        let unlock = || if is_thread { mutex.release_to_sleep() } else { mutex.release() };
        // The unlock may wake this very waiter, if it was notified since it joined: its wake is kept for it.
        let (outcome, waiter) = self.waiters.wait(waiter, Borrowed(mutex), until, unlock);
        let arrival = match outcome {
            Outcome::Served if waiter.given() == Given::Lock => return false,
            Outcome::Served => Arrival::Woken,
            Outcome::TimedOut | Outcome::Cancelled => Arrival::New,
            Outcome::Done(()) => panic!(
                "a Condvar is waited on with a second Mutex while others wait with the first: use one for each"
            ),
        };
        wait::take_back(|| mutex.compete(waiter, arrival, None));
        if outcome == Outcome::Cancelled {
            wait::unwind_cancelled()
        }
        outcome == Outcome::TimedOut
    }

    /// Moves up to `limit` waiters to their mutex.
    #[inline]
    fn notify(&self, limit: usize) -> usize {
        wait::point();
        let count = self.waiters.notify(|Borrowed(mutex), waiters| {
            // SAFETY: a waiter is in the set and borrows the mutex. It leaves under the lock of the set, which is held.
            unsafe { &*mutex }.core().requeue(waiters, limit)
        });
        if count == 0 {
            budget::missed();
        }
        count
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
        self.wait_to(mutex, None);
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.notify(1) == 1
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.notify(usize::MAX)
    }
}

// SAFETY: as for `RawCondvar`.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        time::deadline(*timeout)
    }

    #[track_caller]
    unsafe fn wait_until(&self, mutex: &RawMutex, _guard: &mut GuardNoSend, deadline: &Instant) -> bool {
        self.wait_to(mutex, Some(*deadline))
    }
}

shown!(RawCondvar);
