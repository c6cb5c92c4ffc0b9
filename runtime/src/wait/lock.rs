//! A spin lock for state words and wait lists: held for a handful of instructions, never over a wait or a wake.
//!
//! ```text
//!         swap, Acquire: found free
//!   free ──────────────────────────▶ held ◀──┐ swap: found held, spin
//!        ◀──────────────────────────      ───┘
//!         store, Release: the holder's last touch
//! ```
//!
//! Why not a futex lock: the sections are shorter than the cost of its second read-modify-write (an unlock here is a
//! plain store). Why not spin without end: the holder may have been preempted, so after a few rounds the waiting
//! thread gives its time slice away.

use std::ops::{Deref, DerefMut};

use crate::primitive::{AtomicBool, Ordering, UnsafeCell, spin_loop, yield_now};

/// A value behind a spin lock.
pub struct Lock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one `&mut T` at a time, to any thread; so `T: Send` is what both take.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: as above; no `&T` is ever shared between threads.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// Makes an unlocked lock.
    pub const fn new(value: T) -> Self {
        Lock { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Locks, spinning until the holder is gone. No caller may hold it over a wait, a wake or user code.
    pub fn lock(&self) -> LockGuard<'_, T> {
        self.lock_or_first(|| ())
    }

    /// The same; where somebody holds it, does what `held` does before it spins.
    #[inline]
    pub fn lock_or_first(&self, held: impl FnOnce()) -> LockGuard<'_, T> {
        // Acquire: pairs with the Release in the guard's drop.
        if self.locked.swap(true, Ordering::Acquire) {
            held();
            self.lock_slow();
        }
        LockGuard { lock: self }
    }

    #[cold]
    fn lock_slow(&self) {
        let mut rounds = 0_u32;
        loop {
            // Relaxed: only a hint; the swap decides.
            if !self.locked.load(Ordering::Relaxed) && !self.locked.swap(true, Ordering::Acquire) {
                return;
            }
            rounds += 1;
            if rounds.is_multiple_of(64) { yield_now() } else { spin_loop() }
        }
    }
}

/// Unlocks when dropped.
pub struct LockGuard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so the lock is held by it and nobody else reaches the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` keeps this borrow alone.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for LockGuard<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `lock`.
        self.lock.locked.store(false, Ordering::Release);
    }
}
