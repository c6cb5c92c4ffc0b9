//! The untyped lock: the state, its owner, and what `lock_api` asks of it.
//!
//! ```text
//!  the owner:       locked, as a writer or as an upgradable reader
//!               0 ────────────────────────────────────────────────▶ the number of the caller
//!                 ◀────────────────────────────────────────────────
//!                   before the unlock, by the holder of the guard
//! ```

use std::mem::{self, offset_of};
use std::time::{Duration, Instant};

use lock_api::GuardNoSend;

use super::state::{Claim, Hold, Policy, SHORT_QUEUE, State, Unlock};
use crate::budget;
use crate::primitive::{AtomicU64, Ordering, fence};
use crate::wait::{self, LockWait, Looks, Until, WaitDescription};

/// Locks without protecting a value: the lock under an [`RwLock`](crate::RwLock).
///
/// # Examples
/// ```
/// use fibra_sync::RawRwLock;
/// use fibra_sync::lock_api::RwLock;
/// let lock = RwLock::from_raw(RawRwLock::writer_first(), 1);
/// assert_eq!(*lock.read(), 1);
/// ```
pub struct RawRwLock {
    state: State,
    /// The number of the task or thread that took the lock as the writer or the upgradable reader, 0 if there is none.
    ///
    /// Only the holder of the guard writes it, and takes it back before the unlock. So a caller that reads its own number
    /// holds the lock, or has passed its guard on.
    owner: AtomicU64,
}

static RWLOCK: WaitDescription = WaitDescription::new("rwlock").owner_number(
    offset_of!(RawRwLock, owner) as isize - offset_of!(RawRwLock, state) as isize - State::QUEUE,
    0,
);

impl RawRwLock {
    const fn with(policy: Policy) -> Self {
        RawRwLock { state: State::new(policy, SHORT_QUEUE), owner: AtomicU64::new(0) }
    }

    /// Makes an unlocked lock in which a waiting writer goes before later readers.
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

    /// Waits for `claim`, unless the caller would wait for itself, for ever. Returns true if it was
    /// granted.
    #[cold]
    #[track_caller]
    fn lock_slow(&self, claim: Claim, deadline: Option<Instant>) -> bool {
        assert!(
            claim != Claim::Read || !self.state.is_full(),
            "fibra::sync::RwLock has too many readers: are their guards forgotten?"
        );
        // Acquire: the look at the word that brought the caller here pairs with the Release of the last unlock. So a number
        // that the caller left here with a guard that it passed on is not seen any more once that guard is dropped.
        fence(Ordering::Acquire);
        if deadline.is_none() && self.is_mine() {
            panic!(
                "fibra::sync::RwLock locked twice by {}: drop the first guard before, or pass it on",
                wait::describe_caller()
            );
        }
        self.wait(claim, deadline)
    }

    #[track_caller]
    fn wait(&self, claim: Claim, deadline: Option<Instant>) -> bool {
        if wait::back_off_until(Looks::Often, || self.state.try_claim(claim)) {
            return true;
        }
        let _counted = LockWait::begin();
        self.state.wait(claim, Until::shielded(deadline).described(&RWLOCK))
    }

    #[inline]
    #[track_caller]
    fn read_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> Option<GuardNoSend> {
        (self.state.try_read() || self.lock_slow(Claim::Read, deadline())).then(GuardNoSend::new)
    }

    /// Locks for reading, if that needs no wait. Counts no operation.
    #[inline]
    pub(super) fn try_read(&self) -> Option<GuardNoSend> {
        self.state.try_read().then(GuardNoSend::new)
    }

    /// Reads past the waiters. A caller that finds a writer waits as a plain reader, past no waiter.
    #[inline]
    #[track_caller]
    pub(super) fn read_recursive_to(
        &self,
        deadline: impl FnOnce() -> Option<Instant>,
    ) -> Option<GuardNoSend> {
        (self.state.try_read_recursive() || self.lock_slow(Claim::Read, deadline())).then(GuardNoSend::new)
    }

    #[inline]
    pub(super) fn try_read_recursive(&self) -> Option<GuardNoSend> {
        self.state.try_read_recursive().then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    fn write_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> Option<GuardNoSend> {
        (self.state.try_write() || self.lock_slow(Claim::Write, deadline())).then(|| self.acquired())
    }

    #[inline]
    #[track_caller]
    fn upgradable_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> Option<GuardNoSend> {
        let claim = Claim::Upgradable;
        (self.state.try_claim(claim) || self.lock_slow(claim, deadline())).then(|| self.acquired())
    }

    /// Makes the upgradable reader the writer. The owner stays what it is.
    #[inline]
    #[track_caller]
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

    /// Waits to be the writer. A wait that is forbidden unwinds: the guard is gone then, so it gives the lock up.
    #[cold]
    #[track_caller]
    fn wait_to_upgrade(&self, deadline: Option<Instant>) -> bool {
        let abandoned = Abandoned(self);
        let is_upgraded = self.wait(Claim::Upgrade, deadline);
        mem::forget(abandoned);
        is_upgraded
    }

    #[inline]
    fn leave_read(&self, unlock: Unlock) {
        wait::point();
        if self.state.leave_read() {
            self.state.settle(unlock);
        }
    }

    #[inline]
    fn leave_write(&self, to: Option<Hold>, unlock: Unlock) {
        wait::point();
        if to != Some(Hold::Upgradable) {
            self.disown();
        }
        if !self.state.try_leave_write(to) {
            self.state.exchange(Hold::Write, to, unlock);
        }
    }

    #[inline]
    fn leave_upgradable(&self, to: Option<Hold>, unlock: Unlock) {
        wait::point();
        self.disown();
        if !self.state.try_leave_upgradable(to) {
            self.state.exchange(Hold::Upgradable, to, unlock);
        }
    }

    pub(super) fn admits_readers(&self) -> bool {
        let seen = self.state.look();
        !seen.written && !seen.closed && !self.state.is_full()
    }

    /// Makes room for one more reader only.
    #[cfg(test)]
    pub(super) fn leave_one_reader(&self) {
        self.state.leave_one_reader();
    }
}

/// The hold of an upgradable reader whose guard is gone; given up when dropped.
struct Abandoned<'a>(&'a RawRwLock);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.0.leave_upgradable(None, Unlock::Usual);
    }
}

// SAFETY: the word admits readers or one writer. A lock acquires what the unlocks before it have
// released (see `State`). No operation unwinds after it has changed the state. An operation that
// has consumed a guard releases the hold of that guard before it unwinds. A held lock may be moved
// or dropped: it points nowhere, and has no waiters then, which would borrow it.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self::with(Policy::PhaseFair);

    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) -> GuardNoSend {
        wait::charge();
        let _ = self.state.try_read() || self.lock_slow(Claim::Read, None);
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        wait::charge();
        self.try_read()
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardNoSend) {
        self.leave_read(Unlock::Usual);
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) -> GuardNoSend {
        wait::charge();
        let _ = self.state.try_write() || self.lock_slow(Claim::Write, None);
        self.acquired()
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        wait::charge();
        self.state.try_write().then(|| self.acquired())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _guard: GuardNoSend) {
        self.leave_write(None, Unlock::Usual);
    }

    fn is_locked(&self) -> bool {
        wait::charge();
        let seen = self.state.look();
        seen.written || seen.upgradable || seen.readers > 0
    }

    fn is_locked_exclusive(&self) -> bool {
        wait::charge();
        self.state.look().written
    }
}

// SAFETY: as for `RawRwLock`. Each unlock is fair.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self, _guard: GuardNoSend) {
        self.leave_read(Unlock::Fair);
    }

    unsafe fn unlock_exclusive_fair(&self, _guard: GuardNoSend) {
        self.leave_write(None, Unlock::Fair);
    }

    unsafe fn bump_shared(&self, _guard: &mut GuardNoSend) {
        // A caller that is the upgradable reader too would wait for itself.
        if self.state.look().closed && !self.is_mine() {
            // The guard stands for the hold also if this unwinds: so not between the two.
            wait::check_may_suspend();
            self.leave_read(Unlock::Fair);
            let _ = wait::take_back(|| self.wait(Claim::Read, None));
        }
    }

    unsafe fn bump_exclusive(&self, _guard: &mut GuardNoSend) {
        if self.state.look().awaited {
            // As in `bump_shared`.
            wait::check_may_suspend();
            self.leave_write(None, Unlock::Fair);
            let _ = wait::take_back(|| self.wait(Claim::Write, None));
            let _ = self.acquired();
        }
    }
}

// SAFETY: as for `RawRwLock`; a writer that becomes a reader releases as an unlock does.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        self.leave_write(Some(Hold::Read), Unlock::Usual);
        guard
    }
}

// SAFETY: as for `RawRwLock`.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.read_to(budget::charge_within(timeout))
    }

    #[track_caller]
    fn try_lock_shared_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        wait::charge();
        self.read_to(|| Some(deadline))
    }

    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.write_to(budget::charge_within(timeout))
    }

    #[track_caller]
    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        wait::charge();
        self.write_to(|| Some(deadline))
    }
}

// SAFETY: as for `RawRwLock`; an upgrade locks as a writer does, and acquires as one.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    type UpgradableGuard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_upgradable(&self) -> GuardNoSend {
        wait::charge();
        let _ = self.state.try_claim(Claim::Upgradable) || self.lock_slow(Claim::Upgradable, None);
        self.acquired()
    }

    #[inline]
    fn try_lock_upgradable(&self) -> Option<GuardNoSend> {
        wait::charge();
        self.state.try_claim(Claim::Upgradable).then(|| self.acquired())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, _guard: GuardNoSend) {
        self.leave_upgradable(None, Unlock::Usual);
    }

    #[inline]
    unsafe fn upgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        wait::charge();
        let _ = self.state.try_claim(Claim::Upgrade) || self.wait_to_upgrade(None);
        guard
    }

    #[inline]
    unsafe fn try_upgrade(&self, guard: GuardNoSend) -> Result<GuardNoSend, GuardNoSend> {
        wait::charge();
        match self.state.try_claim(Claim::Upgrade) {
            true => Ok(guard),
            false => Err(guard),
        }
    }
}

// SAFETY: as for `RawRwLock`. Each unlock is fair.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self, _guard: GuardNoSend) {
        self.leave_upgradable(None, Unlock::Fair);
    }

    unsafe fn bump_upgradable(&self, _guard: &mut GuardNoSend) {
        if self.state.look().awaited {
            // As in `bump_shared`.
            wait::check_may_suspend();
            self.leave_upgradable(None, Unlock::Fair);
            let _ = wait::take_back(|| self.wait(Claim::Upgradable, None));
            let _ = self.acquired();
        }
    }
}

// SAFETY: as for `RawRwLockDowngrade`.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        self.leave_upgradable(Some(Hold::Read), Unlock::Usual);
        guard
    }

    unsafe fn downgrade_to_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        self.leave_write(Some(Hold::Upgradable), Unlock::Usual);
        guard
    }
}

// SAFETY: as for `RawRwLockUpgrade`; an upgrade that fails leaves the caller the upgradable reader that it was.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.upgradable_to(budget::charge_within(timeout))
    }

    #[track_caller]
    fn try_lock_upgradable_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        wait::charge();
        self.upgradable_to(|| Some(deadline))
    }

    unsafe fn try_upgrade_for(
        &self,
        guard: GuardNoSend,
        timeout: Duration,
    ) -> Result<GuardNoSend, GuardNoSend> {
        self.upgrade_to(guard, budget::charge_within(timeout))
    }

    unsafe fn try_upgrade_until(
        &self,
        guard: GuardNoSend,
        deadline: Instant,
    ) -> Result<GuardNoSend, GuardNoSend> {
        wait::charge();
        self.upgrade_to(guard, || Some(deadline))
    }
}
