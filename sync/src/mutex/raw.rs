//! The untyped mutex: how its callers wait, when an unlock hands over, and what tells reentrant owners apart.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use fibra_runtime::clock;

use lock_api::GuardNoSend;

use super::core::{Core, Given, HandOff, Policy, Waiter};
use super::state::{Arrival, Attempt, Owner};
use crate::budget;
use crate::patience;
use crate::wait::{self, LockWait, Looks, WorkerId};

/// Locks without protecting a value: the lock under a [`Mutex`](super::Mutex).
///
/// `U` says what an unlock does.
pub struct RawMutex<U = BoundedBarging> {
    core: Core,
    unlock: PhantomData<U>,
}

/// Locks without protecting a value: the lock under a [`FairMutex`](super::FairMutex).
pub type RawFairMutex = RawMutex<Fair>;

impl<U> RawMutex<U> {
    /// The word and the queue, for a condition whose waiters go into it.
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    #[cold]
    #[track_caller]
    fn lock_slow(&self, me: Owner) {
        match self.core.word().take(me, Arrival::New) {
            Attempt::Taken => (),
            Attempt::Owned(owner) if owner == me => locked_twice(),
            Attempt::Owned(_) => _ = self.acquire(me, None),
        }
    }

    /// Takes the mutex for the caller, whose waiter is at `me`, until `deadline`. Returns true if
    /// taken.
    #[cold]
    #[track_caller]
    fn acquire(&self, me: Owner, deadline: Option<Instant>) -> bool {
        self.compete(Waiter::new(me, wait::current_worker()), Arrival::New, deadline)
    }

    /// Takes the mutex for a waiter that may have waited before. Returns true if taken.
    #[track_caller]
    pub(crate) fn compete(&self, waiter: Waiter, arrival: Arrival, deadline: Option<Instant>) -> bool {
        let (mut waiter, mut arrival) = (waiter, arrival);
        let (me, word) = (waiter.owner(), self.core.word());
        let in_time = || !clock::has_passed(deadline);
        loop {
            let take = || word.take(me, arrival) == Attempt::Taken;
            if take() {
                return true;
            }
            match in_time() {
                true if wait::back_off_until(Looks::Seldom, take) => return true,
                true => (),
                false => return arrival == Arrival::Woken && self.core.arrive_late(me),
            }
            let given;
            let counted = LockWait::begin();
            (given, waiter) = self.core.wait(waiter, arrival, deadline, || ());
            drop(counted);
            match given {
                Some(Given::Lock) => return true,
                Some(Given::Wake) => arrival = Arrival::Woken,
                // The mutex may be free while the worker of a woken waiter computes.
                None => return word.take(me, Arrival::New) == Attempt::Taken,
            }
        }
    }

    /// Unlocks, and hands over to the longest waiter if there is one. By the owner.
    fn release_fair(&self) {
        wait::point();
        self.core.release_to_queue(&Fair);
    }
}

impl RawMutex {
    /// Unlocks. By the owner, without the guard.
    #[inline]
    pub(crate) fn release(&self) {
        self.core.release(&BoundedBarging);
    }

    /// Unlocks, as the caller, a thread, falls asleep. By the owner.
    pub(crate) fn release_to_sleep(&self) {
        self.core.release_to_sleep(&Leaving);
    }
}

/// What an unlock does.
pub trait Unlock: Sized {
    /// Unlocks. By the owner.
    fn unlock(mutex: &RawMutex<Self>);
}

/// The policy of an unlock: a waiter competes, and once it was bypassed the mutex is handed over to it.
pub struct BoundedBarging;

impl Unlock for BoundedBarging {
    #[inline]
    fn unlock(mutex: &RawMutex) {
        wait::point();
        mutex.release();
    }
}

impl Policy for BoundedBarging {
    fn hand_off(&self, first: &Waiter) -> HandOff {
        if !first.is_bypassed() {
            return HandOff::Wake;
        }
        if first.worker.is_some_and(WorkerId::is_current) {
            return HandOff::Direct;
        }
        let now = clock::now();
        let since = first.since.get().unwrap_or(now);
        first.since.set(Some(since));
        match patience::is_over(since, now) {
            true => HandOff::Direct,
            false => HandOff::Wake,
        }
    }

    fn wakes_another(&self, since: Option<Instant>) -> bool {
        since.is_some_and(|since| patience::is_over(since, clock::now()))
    }
}

/// The policy of an unlock by a thread that sleeps next: its processor becomes free for one more waiter.
struct Leaving;

impl Policy for Leaving {
    fn hand_off(&self, first: &Waiter) -> HandOff {
        BoundedBarging.hand_off(first)
    }

    fn wakes_another(&self, _since: Option<Instant>) -> bool {
        true
    }
}

/// The policy of a fair unlock.
pub struct Fair;

impl Unlock for Fair {
    #[inline]
    fn unlock(mutex: &RawFairMutex) {
        mutex.release_fair();
    }
}

impl Policy for Fair {
    fn hand_off(&self, _first: &Waiter) -> HandOff {
        HandOff::Direct
    }

    fn wakes_another(&self, _since: Option<Instant>) -> bool {
        false
    }
}

#[cold]
#[track_caller]
fn locked_twice() -> ! {
    panic!(
        "fibra::sync::Mutex locked twice by {}, which would wait for itself for ever: drop the first guard before, or take \
         a ReentrantMutex",
        wait::describe_caller()
    )
}

// SAFETY: of all arrivals at a free mutex exactly one takes it, and a hand-over leaves it to one waiter. Taking acquires and
// releasing releases. Only `lock_slow` unwinds, without having taken the mutex. Every waiter in the queue borrows the mutex, so
// that a locked one may be moved or dropped by its owner. An unlock touches the queue's lock after it has freed the word; all
// guards borrow the mutex, or have a count of it, until that has returned.
unsafe impl<U: Unlock> lock_api::RawMutex for RawMutex<U> {
    const INIT: Self = RawMutex { core: Core::new(), unlock: PhantomData };

    type Guard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock(&self) -> GuardNoSend {
        let me = wait::charged_waiter_address();
        if !self.core.word().take_free(me) {
            self.lock_slow(me);
        }
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        let me = wait::charged_waiter_address();
        let word = self.core.word();
        (word.take_free(me) || word.take(me, Arrival::New) == Attempt::Taken).then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        U::unlock(self);
    }

    fn is_locked(&self) -> bool {
        wait::charge();
        self.core.word().look().owner().is_some()
    }
}

// SAFETY: as for `RawMutex`.
unsafe impl<U: Unlock> lock_api::RawMutexFair for RawMutex<U> {
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        self.release_fair();
    }

    unsafe fn bump(&self, _guard: &mut GuardNoSend) {
        if self.core.word().look().has_waiters() {
            // The guard stands for the mutex also if this unwinds: so not between the two.
            wait::check_may_suspend();
            self.release_fair();
            // Not by `lock`: it cannot be locked twice.
            let _ = wait::take_back(|| self.acquire(wait::waiter_address(), None));
        }
    }
}

// SAFETY: as for `RawMutex`.
unsafe impl<U: Unlock> lock_api::RawMutexTimed for RawMutex<U> {
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        let deadline = budget::charge_within(timeout);
        let me = wait::waiter_address();
        if self.core.word().take_free(me) {
            return Some(GuardNoSend::new());
        }
        match deadline() {
            Some(deadline) => self.acquire(me, Some(deadline)).then(GuardNoSend::new),
            None => {
                self.lock_slow(me);
                Some(GuardNoSend::new())
            }
        }
    }

    #[track_caller]
    fn try_lock_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        let me = wait::charged_waiter_address();
        let taken = self.core.word().take_free(me) || self.acquire(me, Some(deadline));
        taken.then(GuardNoSend::new)
    }
}

impl<U: Unlock> fmt::Debug for RawMutex<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawMutex")
            .field("locked", &lock_api::RawMutex::is_locked(self))
            .finish_non_exhaustive()
    }
}

/// Tells the owners of a [`ReentrantMutex`](crate::ReentrantMutex) apart: the tasks and threads.
pub struct ThreadAndTaskId(());

// SAFETY: the number of a task or thread is never used again, also once that has ended.
unsafe impl lock_api::GetThreadId for ThreadAndTaskId {
    const INIT: Self = ThreadAndTaskId(());

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        // A pointer of 32 bits does not hold all numbers. A truncated one may be that of another owner.
        wait::owner().try_into().expect("numbers fit into a usize")
    }
}
