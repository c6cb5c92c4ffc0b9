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

use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};

use crate::base::primitive::{AtomicBool, Ordering, UnsafeCell, spin_loop, yield_now};

/// Guards a value by a spin lock.
///
/// A second value lies beside the lock and is reached without it. A small one fits into the
/// padding.
pub struct Lock<T, B = ()> {
    locked: AtomicBool,
    beside: B,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one `&mut T` at a time, to any thread; so both impls need `T: Send`.
// The value beside it is an ordinary field.
unsafe impl<T: Send, B: Send> Send for Lock<T, B> {}
// SAFETY: as above; a `&T` goes to several threads by a shared guard only, which has a bound for it.
unsafe impl<T: Send, B: Sync> Sync for Lock<T, B> {}

impl<T> Lock<T> {
    /// Makes an unlocked lock.
    pub const fn new(value: T) -> Self {
        Lock::beside((), value)
    }
}

impl<T, B> Lock<T, B> {
    /// The offset of the value beside the lock.
    pub const BESIDE: usize = offset_of!(Self, beside);

    /// Makes an unlocked lock with a value beside it.
    pub const fn beside(beside: B, value: T) -> Self {
        Lock { locked: AtomicBool::new(false), beside, value: UnsafeCell::new(value) }
    }

    /// Returns the value beside the lock.
    #[inline]
    pub fn beside_lock(&self) -> &B {
        &self.beside
    }

    /// Locks, and spins while it is held. A caller must not hold it over a wait, a wake or user
    /// code.
    pub fn lock(&self) -> LockGuard<'_, T, B> {
        self.lock_or_first(|| ())
    }

    /// Locks, and calls `held` before it spins if the lock is held.
    #[inline]
    pub fn lock_or_first(&self, held: impl FnOnce()) -> LockGuard<'_, T, B> {
        // Acquire: pairs with the Release in the guard's drop.
        if self.locked.swap(true, Ordering::Acquire) {
            held();
            self.lock_slow();
        }
        LockGuard { lock: self, not_sync: PhantomData }
    }

    /// Returns true while the lock is held.
    pub fn is_locked(&self) -> bool {
        // Acquire: pairs with the Release in the guard's drop.
        self.locked.load(Ordering::Acquire)
    }

    /// Returns the value, without locking: the caller is alone with the lock.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `&mut self` keeps this borrow alone.
        unsafe { &mut *self.value.get() }
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
pub struct LockGuard<'a, T, B = ()> {
    lock: &'a Lock<T, B>,
    /// It gives `&T`, which `T: Send` is not enough for.
    not_sync: PhantomData<*const ()>,
}

// SAFETY: any thread may unlock, and reaches the value alone, as by the lock.
unsafe impl<T: Send, B: Sync> Send for LockGuard<'_, T, B> {}
// SAFETY: what several threads reach through it is `&T`.
unsafe impl<T: Sync, B: Sync> Sync for LockGuard<'_, T, B> {}

impl<T, B> Deref for LockGuard<'_, T, B> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so it holds the lock, and no other code reaches the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, B> DerefMut for LockGuard<'_, T, B> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` keeps this borrow alone.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T, B> Drop for LockGuard<'_, T, B> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `lock`.
        self.lock.locked.store(false, Ordering::Release);
    }
}
