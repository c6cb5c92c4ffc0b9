//! The untyped mutex: how its callers wait in line, and when an unlock hands over.

use std::fmt;
use std::time::{Duration, Instant};

use fibra_runtime::time;

use lock_api::GuardNoSend;

use super::line::{Given, Line, Manner, Seat};
use super::state::{Attempt, Comer, Unlocked};
use crate::wait::list::Node;
use crate::wait::{self, Asleep, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// How long a waiter of another worker may be bypassed before it gets the lock handed over.
const PATIENCE: Duration = Duration::from_millis(1);

/// The lock under a [`Mutex`](super::Mutex), without what it protects.
pub struct RawMutex {
    line: Line,
}

impl RawMutex {
    /// The line, for a condition whose waiters go into it.
    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    #[cold]
    #[track_caller]
    fn lock_slow(&self, me: u64) {
        match self.line.take(me, Comer::New) {
            Attempt::Taken => (),
            Attempt::Owned(owner) if owner == me => locked_twice(),
            Attempt::Owned(_) => _ = self.acquire(me, None),
        }
    }

    /// Takes the lock for the caller, whose number is `me`, until `deadline`. True if taken.
    #[cold]
    pub(crate) fn acquire(&self, me: u64, deadline: Option<Instant>) -> bool {
        self.compete(&Node::with(Seat::new(me)), Comer::New, deadline)
    }

    /// The same, with a node that may have been in the line before.
    pub(crate) fn compete(&self, node: &Node<Seat>, mut comer: Comer, deadline: Option<Instant>) -> bool {
        let seat = node.data();
        let in_time = || deadline.is_none_or(|deadline| Instant::now() < deadline);
        loop {
            let take = || self.line.take(seat.number(), comer) == Attempt::Taken;
            if take() {
                return true;
            }
            match in_time() {
                true if wait::back_off_until(take) => return true,
                // One that was woken has to tell the line that it came.
                false if comer == Comer::New => return false,
                _ => (),
            }
            seat.home.set(wait::home());
            let turn = Turn { line: &self.line, node, comer };
            match (wait::sleep_shielded(&turn, deadline), seat.given()) {
                (Waking::Notified, Given::Lock) => return true,
                (Waking::Notified, Given::Wake) => comer = Comer::Woken,
                (Waking::TimedOut | Waking::Cancelled, _) => return false,
            }
        }
    }

    /// Locks again after a condition's wait, by one that was notified and served out of the line.
    pub(crate) fn relock(&self, node: &Node<Seat>) {
        match node.data().given() {
            Given::Lock => (),
            Given::Wake => _ = self.compete(node, Comer::Woken, None),
        }
    }

    /// Unlocks. By the owner, without the guard.
    #[inline]
    pub(crate) fn release(&self) {
        match self.line.release_alone() {
            Unlocked::Alone => (),
            Unlocked::Met => self.look(),
            Unlocked::Not => self.pass_on(bounded_barging),
        }
    }

    /// Wakes who came while the lock was let go.
    #[cold]
    fn look(&self) {
        if let Some(wake) = self.line.look(bounded_barging) {
            wake.wake();
        }
    }

    /// Unlocks with regard to the longest waiter, as `manner` says.
    #[cold]
    fn pass_on(&self, manner: impl FnOnce(&Seat) -> Manner) {
        if let Some(wake) = self.line.release(manner) {
            wake.wake();
        }
    }
}

/// How an unlock treats the longest waiter.
fn bounded_barging(seat: &Seat) -> Manner {
    if !seat.bypassed.get() {
        return Manner::Wake;
    }
    if seat.home.get().is_some() && seat.home.get() == wait::home() {
        return Manner::HandOver;
    }
    let now = Instant::now();
    match seat.since.get() {
        Some(since) if now.saturating_duration_since(since) >= PATIENCE => Manner::HandOver,
        Some(_) => Manner::Wake,
        None => {
            seat.since.set(Some(now));
            Manner::Wake
        }
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

// SAFETY: of those who take the lock from free exactly one succeeds, and a hand-over leaves it to one waiter; taking
// acquires and releasing releases. Only `lock_slow` unwinds, without having taken the lock. The line holds no node of
// anybody who does not borrow the lock, so a locked one may be moved and dropped by who owns it. An unlock reads the lock after it
// has freed it, and all guards borrow it, or have a count of it, until that has returned.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = RawMutex { line: Line::new() };

    type Guard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock(&self) -> GuardNoSend {
        let me = wait::charged_owner().get();
        if !self.line.take_free(me) {
            self.lock_slow(me);
        }
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        let me = wait::owner().get();
        self.line.take_free(me).then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        self.release();
    }

    fn is_locked(&self) -> bool {
        self.line.owner() != 0
    }
}

// SAFETY: as for `RawMutex`.
unsafe impl lock_api::RawMutexFair for RawMutex {
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        // With a waiter on its way and others in the line, one of those gets the lock.
        match self.line.has_waiters() {
            true => self.pass_on(|_| Manner::HandOver),
            false => self.release(),
        }
    }

    unsafe fn bump(&self, _guard: &mut GuardNoSend) {
        if self.line.has_waiters() {
            // The guard stands for the lock also if this unwinds: so not between the two.
            wait::check_may_suspend();
            self.pass_on(|_| Manner::HandOver);
            // Not by `lock`: it cannot be locked twice.
            let _ = wait::take_back(|| self.acquire(wait::owner().get(), None));
        }
    }
}

// SAFETY: as for `RawMutex`.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        // Who gives way for its operations does so within its time; who need not reads no clock for a free lock.
        let ahead = wait::charge_poll().then(|| {
            let deadline = time::deadline(timeout);
            wait::charge();
            deadline
        });
        let me = wait::owner().get();
        if self.line.take_free(me) {
            return Some(GuardNoSend::new());
        }
        match ahead.unwrap_or_else(|| time::deadline(timeout)) {
            Some(deadline) => self.acquire(me, Some(deadline)).then(GuardNoSend::new),
            None => {
                self.lock_slow(me);
                Some(GuardNoSend::new())
            }
        }
    }

    fn try_lock_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        let me = wait::charged_owner().get();
        let taken = self.line.take_free(me) || self.acquire(me, Some(deadline));
        taken.then(GuardNoSend::new)
    }
}

impl fmt::Debug for RawMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawMutex")
            .field("locked", &lock_api::RawMutex::is_locked(self))
            .finish_non_exhaustive()
    }
}

/// One sleep in the line.
struct Turn<'a> {
    line: &'a Line,
    node: &'a Node<Seat>,
    comer: Comer,
}

impl WaitStrategy for Turn<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: the node outlives the sleep, before whose end it is withdrawn or its wake has landed, and is in no list;
        // the wake is dropped unused, or taken out of the line under its lock.
        match unsafe { self.line.enter(self.node, me.raw(), self.comer) } {
            true => Asleep::Rouse,
            false => Asleep::Stay,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        // SAFETY: the node is in this line or in none.
        match unsafe { self.line.leave(self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }
}
