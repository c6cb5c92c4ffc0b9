//! A lock that costs its owner no locked instruction.
//!
//! ```text
//!  owner                                  others, one at a time
//!  inside := true                         wanted := true
//!  light fence                            heavy fence
//!  wanted? ── yes: inside := false,       inside? ── yes: wait
//!   │               wait, try again        │
//!   no: the value is the owner's           no: the value is theirs
//!  inside := false                        wanted := false
//! ```
//!
//! The two fences order each side's store before its load, so at least one side sees the other's
//! store. Both cannot be inside at once. If both back off at once, the owner gives way.

use crate::base::primitive::{
    AtomicBool, Ordering, UnsafeCell, heavy_fence, light_fence, spin_loop, yield_now,
};
use crate::base::spin_lock::Lock;

/// Locks a value that its owner uses all the time, and other threads hardly ever.
pub(crate) struct Biased<T> {
    inside: AtomicBool,
    wanted: AtomicBool,
    others: Lock<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is handed to one thread at a time.
unsafe impl<T: Send> Send for Biased<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Biased<T> {}

impl<T> Biased<T> {
    pub(crate) const fn new(value: T) -> Self {
        Biased {
            inside: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            others: Lock::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Runs `f` with the value. Called by the owner.
    ///
    /// # Safety
    /// All calls of this function for one value come from one thread. `f` neither panics nor reaches this value again.
    #[inline]
    pub(crate) unsafe fn own<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        while !self.enter() {
            self.give_way();
        }
        // SAFETY: `inside` was set, and then `wanted` was clear. By the fences a thread that wants
        // the value from now on sees `inside`.
        let result = f(unsafe { &mut *self.value.get() });
        // Release: pairs with the Acquire in `borrow`.
        self.inside.store(false, Ordering::Release);
        result
    }

    #[inline]
    fn enter(&self) -> bool {
        // Relaxed: the fence orders it before the load.
        self.inside.store(true, Ordering::Relaxed);
        light_fence();
        // Acquire: pairs with the Release at the end of `borrow`.
        !self.wanted.load(Ordering::Acquire)
    }

    #[cold]
    fn give_way(&self) {
        // Release: pairs with the Acquire in `borrow`; nothing was done to the value.
        self.inside.store(false, Ordering::Release);
        // Relaxed: `enter` looks again.
        while self.wanted.load(Ordering::Relaxed) {
            yield_now();
        }
    }

    /// Runs `f` with the value. Callable from any thread.
    pub(crate) fn borrow<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let _alone = self.others.lock();
        // Relaxed: the fence orders it before the loads.
        self.wanted.store(true, Ordering::Relaxed);
        heavy_fence();
        let mut rounds = 0_u32;
        // Acquire: pairs with the Release in `own`.
        while self.inside.load(Ordering::Acquire) {
            rounds += 1;
            if rounds.is_multiple_of(64) { yield_now() } else { spin_loop() }
        }
        // SAFETY: `wanted` was set, and then the owner was not inside. By the fences it sees
        // `wanted` before it enters again. `others` keeps all other threads out.
        let result = f(unsafe { &mut *self.value.get() });
        // Release: pairs with the Acquire in `enter`.
        self.wanted.store(false, Ordering::Release);
        result
    }
}
