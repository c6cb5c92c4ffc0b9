//! The untyped mutex whose every unlock is fair.

use std::time::{Duration, Instant};

use lock_api::{GuardNoSend, RawMutexFair, RawMutexTimed};

use super::raw::RawMutex;

/// Locks without protecting a value: the lock under a [`FairMutex`](super::FairMutex).
#[derive(Debug)]
pub struct RawFairMutex(RawMutex);

// SAFETY: it is the mutex inside, and unlocks it by that one's own fair unlock.
unsafe impl lock_api::RawMutex for RawFairMutex {
    const INIT: Self = RawFairMutex(RawMutex::INIT);

    type Guard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock(&self) -> GuardNoSend {
        self.0.lock()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        self.0.release_fair();
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as for `RawFairMutex`.
unsafe impl RawMutexFair for RawFairMutex {
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        self.0.release_fair();
    }

    unsafe fn bump(&self, guard: &mut GuardNoSend) {
        // SAFETY: the caller holds the mutex by `guard`.
        unsafe { self.0.bump(guard) }
    }
}

// SAFETY: as for `RawFairMutex`.
unsafe impl RawMutexTimed for RawFairMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.0.try_lock_for(timeout)
    }

    #[track_caller]
    fn try_lock_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.0.try_lock_until(deadline)
    }
}
