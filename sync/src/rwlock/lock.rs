//! The untyped lock: the state, the sleeps in it, and what `lock_api` asks of it.
//!
//! ```text
//!  the owner:       locked, as a writer or as an upgradable reader
//!               0 ────────────────────────────────────────────────▶ the number of who did it
//!                 ◀────────────────────────────────────────────────
//!                   before it is let go, by whoever has the guard
//! ```

use std::cell::Cell;
use std::mem;
use std::time::{Duration, Instant};

use fibra_runtime::time;

use lock_api::GuardNoSend;

use super::raw::{Arrival, Claim, Departure, Fate, Hold, Policy, Queues, ReaderNode, Served, State};
use crate::primitive::{AtomicU64, Ordering, fence};
use crate::wait::list::Node;
use crate::wait::{self, Asleep, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// The part of [`RwLock`](crate::RwLock) that knows nothing of the value, for types that are generic over
/// `lock_api`'s traits.
pub struct RawRwLock {
    state: State,
    /// The number of the task or thread that took the lock as the writer or the upgradable reader, 0 if there is none.
    /// Written by who has the guard only, and taken back before the lock is let go: so who reads its own number here holds
    /// the lock, or has passed its guard to a task that does.
    owner: AtomicU64,
}

impl RawRwLock {
    const fn with(policy: Policy) -> Self {
        RawRwLock { state: State::new(policy), owner: AtomicU64::new(0) }
    }

    /// Makes an unlocked lock in which a writer that waits goes before any reader that comes later.
    pub const fn writer_first() -> Self {
        Self::with(Policy::WriterFirst)
    }

    fn acquired(&self) -> GuardNoSend {
        // Relaxed: compared with the reader's own number only.
        self.owner.store(wait::owner().get(), Ordering::Relaxed);
        GuardNoSend::new()
    }

    fn disown(&self) {
        // Relaxed: as in `acquired`.
        self.owner.store(0, Ordering::Relaxed);
    }

    fn is_mine(&self) -> bool {
        // Relaxed: only the caller writes the caller's number.
        self.owner.load(Ordering::Relaxed) == wait::owner().get()
    }

    /// Panics if the caller would wait for itself, for ever. After it has found the lock taken.
    #[track_caller]
    fn refuse_relock(&self, deadline: Option<Instant>) {
        // Acquire: the look at the word that brought the caller here pairs with the Release of whoever let the lock go last. So
        // a number that the caller left here with a guard that it passed on is not seen any more once that guard has gone.
        fence(Ordering::Acquire);
        if deadline.is_none() && self.is_mine() {
            panic!(
                "fibra::sync::RwLock locked twice by {}: drop the first guard before, or pass it on",
                wait::describe_caller()
            );
        }
    }

    #[cold]
    #[track_caller]
    fn read_slow(&self, deadline: Option<Instant>) -> bool {
        assert!(
            !self.state.is_full(),
            "fibra::sync::RwLock has too many readers: are their guards forgotten?"
        );
        self.refuse_relock(deadline);
        self.wait_to_read(deadline)
    }

    #[cold]
    #[track_caller]
    fn claim_slow(&self, claim: Claim, deadline: Option<Instant>) -> bool {
        self.refuse_relock(deadline);
        self.wait_to_claim(claim, deadline)
    }

    fn wait_to_read(&self, deadline: Option<Instant>) -> bool {
        wait::charge();
        if wait::spin_until(|| self.state.try_read()) {
            return true;
        }
        let reader = Reader { state: &self.state, node: Node::with(Cell::new(0)), granted: Cell::new(false) };
        if wait::sleep_shielded(&reader, deadline) == Waking::Notified || reader.granted.get() {
            return true;
        }
        self.settle();
        false
    }

    #[cold]
    fn wait_to_claim(&self, claim: Claim, deadline: Option<Instant>) -> bool {
        wait::charge();
        if wait::spin_until(|| self.state.try_claim(claim)) {
            return true;
        }
        let claimant = Claimant { state: &self.state, node: Node::with(claim) };
        if wait::sleep_shielded(&claimant, deadline) == Waking::Notified {
            return true;
        }
        // Others may have waited behind this claim only.
        self.settle();
        false
    }

    /// Wakes who was let in.
    fn wake(&self, served: Served) {
        if let Some(claimant) = served.claimant {
            claimant.wake();
        }
        if served.readers {
            wait::wake_all(&self.state.queues, Queues::next_admitted);
        }
    }

    #[inline]
    #[track_caller]
    fn read_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> Option<GuardNoSend> {
        (self.state.try_read() || self.read_slow(deadline())).then(GuardNoSend::new)
    }

    /// Reads past those who wait. Who reads already finds no writer inside; who does not may come to wait, and is a plain
    /// reader from then on, past nobody.
    #[inline]
    #[track_caller]
    pub(super) fn read_recursive_to(
        &self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Option<GuardNoSend> {
        (self.try_read_recursive() || self.read_slow(deadline())).then(GuardNoSend::new)
    }

    #[inline]
    pub(super) fn try_read_recursive(&self) -> bool {
        self.state.try_read_recursive()
    }

    #[inline]
    #[track_caller]
    fn write_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> Option<GuardNoSend> {
        (self.state.try_write() || self.claim_slow(Claim::Write, deadline())).then(|| self.acquired())
    }

    #[inline]
    #[track_caller]
    fn upgradable_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> Option<GuardNoSend> {
        let claim = Claim::Upgradable;
        (self.state.try_claim(claim) || self.claim_slow(claim, deadline())).then(|| self.acquired())
    }

    /// The caller holds the lock as an upgradable reader, and the owner stays what it is.
    #[inline]
    fn upgrade_to(
        &self,
        guard: GuardNoSend,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Result<GuardNoSend, GuardNoSend> {
        match self.state.try_claim(Claim::Upgrade) || self.wait_to_upgrade(deadline()) {
            true => Ok(guard),
            false => Err(guard),
        }
    }

    /// Waits to be the writer. Where that is forbidden it unwinds, and nobody has the guard any more: then the lock is given up.
    #[cold]
    #[track_caller]
    fn wait_to_upgrade(&self, deadline: Option<Instant>) -> bool {
        let abandoned = Abandoned(self);
        let upgraded = self.wait_to_claim(Claim::Upgrade, deadline);
        mem::forget(abandoned);
        upgraded
    }

    #[inline]
    fn leave_read(&self) {
        if self.state.leave_read() == Departure::Last {
            self.settle();
        }
    }

    #[inline]
    fn leave_write(&self, to: Option<Hold>) {
        if to != Some(Hold::Upgradable) {
            self.disown();
        }
        if !self.state.try_leave_write(to) {
            self.exchange(Hold::Write, to);
        }
    }

    #[inline]
    fn leave_upgradable(&self, to: Option<Hold>) {
        self.disown();
        if !self.state.try_leave_upgradable(to) {
            self.exchange(Hold::Upgradable, to);
        }
    }

    #[cold]
    fn exchange(&self, from: Hold, to: Option<Hold>) {
        self.wake(self.state.exchange(from, to));
    }

    pub(super) fn admits_readers(&self) -> bool {
        let seen = self.state.look();
        !seen.written && !seen.closed && !self.state.is_full()
    }

    /// Makes room for one more reader only.
    #[cfg(test)]
    pub(super) fn crowd(&self) {
        self.state.crowd();
    }

    #[cold]
    fn settle(&self) {
        self.wake(self.state.settle());
    }
}

fn at(deadline: Instant) -> impl FnOnce() -> Option<Instant> {
    move || Some(deadline)
}

/// A reader that waits.
struct Reader<'a> {
    state: &'a State,
    node: ReaderNode,
    /// Its time ran out, but it had been let in before.
    granted: Cell<bool>,
}

impl WaitStrategy for Reader<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: the node stays until the sleep is over, is in no list, and is only touched under the queues' lock; its
        // wake is taken out of it under that lock, and `before_awake` answers `Served` from then on.
        match unsafe { self.state.enqueue_reader(&self.node, me.raw()) } {
            Arrival::Taken => Asleep::Rouse,
            Arrival::Queued => Asleep::Stay,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        // SAFETY: without a notification it is the second hook after a first that queued the node.
        let fate = unsafe { self.state.withdraw_reader(&self.node) };
        self.granted.set(fate == Fate::Granted);
        withdrawal(fate)
    }

    fn may_spin(&self) -> bool {
        true
    }
}

/// A writer, an upgradable reader or an upgrade that waits.
struct Claimant<'a> {
    state: &'a State,
    node: Node<Claim>,
}

impl WaitStrategy for Claimant<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: as for `Reader`.
        match unsafe { self.state.enqueue_claim(&self.node, me.raw()) } {
            Arrival::Taken => Asleep::Rouse,
            Arrival::Queued => Asleep::Stay,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        // SAFETY: as for `Reader`.
        withdrawal(unsafe { self.state.withdraw_claim(&self.node) })
    }

    fn may_spin(&self) -> bool {
        true
    }
}

/// The hold of an upgradable reader whose guard is gone; given up when dropped.
struct Abandoned<'a>(&'a RawRwLock);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.0.leave_upgradable(None);
    }
}

fn withdrawal(fate: Fate) -> Withdrawal {
    match fate {
        Fate::GaveUp | Fate::Granted => Withdrawal::Withdrawn,
        Fate::Woken => Withdrawal::Served,
    }
}

// SAFETY: the word lets in readers or one writer; who goes in acquires what who went out before released (see `State`).
// No operation unwinds after it has changed the state, and one that has taken a guard gives up what that stood for. A lock
// that is held may be moved or dropped: it points nowhere, and nobody waits in it then.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self::with(Policy::PhaseFair);

    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) -> GuardNoSend {
        let _ = self.state.try_read() || self.read_slow(None);
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.state.try_read().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardNoSend) {
        self.leave_read();
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) -> GuardNoSend {
        let _ = self.state.try_write() || self.claim_slow(Claim::Write, None);
        self.acquired()
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        self.state.try_write().then(|| self.acquired())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _guard: GuardNoSend) {
        self.leave_write(None);
    }

    fn is_locked(&self) -> bool {
        let seen = self.state.look();
        seen.written || seen.upgradable || seen.readers > 0
    }

    fn is_locked_exclusive(&self) -> bool {
        self.state.look().written
    }
}

// SAFETY: as for `RawRwLock`. Each unlock is fair.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self, _guard: GuardNoSend) {
        self.leave_read();
    }

    unsafe fn unlock_exclusive_fair(&self, _guard: GuardNoSend) {
        self.leave_write(None);
    }

    unsafe fn bump_shared(&self, _guard: &mut GuardNoSend) {
        // Who is the upgradable reader too would wait for itself.
        if self.state.look().closed && !self.is_mine() {
            // The guard stands for the hold also if this unwinds: so not between the two.
            wait::check_may_suspend();
            self.leave_read();
            let _ = wait::take_back(|| self.wait_to_read(None));
        }
    }

    unsafe fn bump_exclusive(&self, _guard: &mut GuardNoSend) {
        if self.state.look().awaited {
            // As in `bump_shared`.
            wait::check_may_suspend();
            self.leave_write(None);
            let _ = wait::take_back(|| self.wait_to_claim(Claim::Write, None));
            let _ = self.acquired();
        }
    }
}

// SAFETY: as for `RawRwLock`; a writer that becomes a reader releases as one that goes out.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        self.leave_write(Some(Hold::Read));
        guard
    }
}

// SAFETY: as for `RawRwLock`.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.read_to(|| time::deadline(timeout))
    }

    #[track_caller]
    fn try_lock_shared_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.read_to(at(deadline))
    }

    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.write_to(|| time::deadline(timeout))
    }

    #[track_caller]
    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.write_to(at(deadline))
    }
}

// SAFETY: as for `RawRwLock`; an upgrade goes in as a writer does, and acquires as one.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    type UpgradableGuard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_upgradable(&self) -> GuardNoSend {
        let _ = self.state.try_claim(Claim::Upgradable) || self.claim_slow(Claim::Upgradable, None);
        self.acquired()
    }

    #[inline]
    fn try_lock_upgradable(&self) -> Option<GuardNoSend> {
        self.state.try_claim(Claim::Upgradable).then(|| self.acquired())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, _guard: GuardNoSend) {
        self.leave_upgradable(None);
    }

    #[inline]
    unsafe fn upgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        let _ = self.state.try_claim(Claim::Upgrade) || self.wait_to_upgrade(None);
        guard
    }

    #[inline]
    unsafe fn try_upgrade(&self, guard: GuardNoSend) -> Result<GuardNoSend, GuardNoSend> {
        match self.state.try_claim(Claim::Upgrade) {
            true => Ok(guard),
            false => Err(guard),
        }
    }
}

// SAFETY: as for `RawRwLock`. Each unlock is fair.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self, _guard: GuardNoSend) {
        self.leave_upgradable(None);
    }

    unsafe fn bump_upgradable(&self, _guard: &mut GuardNoSend) {
        if self.state.look().awaited {
            // As in `bump_shared`.
            wait::check_may_suspend();
            self.leave_upgradable(None);
            let _ = wait::take_back(|| self.wait_to_claim(Claim::Upgradable, None));
            let _ = self.acquired();
        }
    }
}

// SAFETY: as for `RawRwLockDowngrade`.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        self.leave_upgradable(Some(Hold::Read));
        guard
    }

    unsafe fn downgrade_to_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        self.leave_write(Some(Hold::Upgradable));
        guard
    }
}

// SAFETY: as for `RawRwLockUpgrade`; an upgrade that fails leaves the caller the upgradable reader that it was.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.upgradable_to(|| time::deadline(timeout))
    }

    #[track_caller]
    fn try_lock_upgradable_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.upgradable_to(at(deadline))
    }

    unsafe fn try_upgrade_for(
        &self,
        guard: GuardNoSend,
        timeout: Duration,
    ) -> Result<GuardNoSend, GuardNoSend> {
        self.upgrade_to(guard, || time::deadline(timeout))
    }

    unsafe fn try_upgrade_until(
        &self,
        guard: GuardNoSend,
        deadline: Instant,
    ) -> Result<GuardNoSend, GuardNoSend> {
        self.upgrade_to(guard, at(deadline))
    }
}
