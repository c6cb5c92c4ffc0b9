//! A value that is made at its first use.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::once::{End, Name, Once};

const NAME: Name = Name("LazyLock");

/// A value that is made at its first use, once.
///
/// Has the interface of [`std::sync::LazyLock`]. A use after the first costs one load. The initializer runs shielded from
/// the cancellation of its task.
///
/// # Fairness
/// All who wait for the value are woken by it.
///
/// # Deadlocks
/// As for [`Once`](crate::Once#deadlocks).
///
/// # Differences from std
/// Waiting leaves the thread to other tasks. A task that comes back to the value from its own initializer panics.
///
/// # Examples
/// ```
/// # use fibra_sync as sync;
/// static SQUARES: sync::LazyLock<Vec<u32>> = sync::LazyLock::new(|| (0..5).map(|n| n * n).collect());
/// assert_eq!(SQUARES[3], 9);
/// ```
pub struct LazyLock<T, F = fn() -> T> {
    once: Once,
    /// `Value` if and only if `once` is completed. Written by the initializer only; shared once it is completed.
    slot: UnsafeCell<Slot<T, F>>,
}

enum Slot<T, F> {
    Initializer(F),
    Value(T),
    /// The initializer was taken out, and has not answered.
    Empty,
}

// SAFETY: a shared lock hands out `&T` to all threads, and moves the value in from one thread that another may drop;
// `F` is only ever moved, by one thread.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// Makes a value that `f` will make at its first use.
    pub const fn new(f: F) -> Self {
        LazyLock { once: Once::new(), slot: UnsafeCell::new(Slot::Initializer(f)) }
    }

    /// The value; makes it if this is its first use. While another caller makes it, this waits for the outcome, untimed as in
    /// std; [`wait_timeout`](LazyLock::wait_timeout) waits with a limit, and makes nothing. Who must not wait asks
    /// [`get`](LazyLock::get).
    ///
    /// # Cancellation
    /// As the acquisition of a lock, this is no cancellation point, and the initializer runs shielded.
    ///
    /// # Panics
    /// If the initializer does, and then at every use after; and if the caller runs in the initializer.
    #[inline]
    #[track_caller]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        if !this.once.is_completed() {
            this.fill();
        }
        // SAFETY: `fill` returns when it is completed.
        unsafe { this.value_unchecked() }
    }

    /// The value, to be changed; makes it if this is its first use.
    ///
    /// # Panics
    /// If the initializer does, and then at every use after.
    #[track_caller]
    pub fn force_mut(this: &mut LazyLock<T, F>) -> &mut T {
        LazyLock::force(this);
        match this.slot.get_mut() {
            Slot::Value(value) => value,
            Slot::Initializer(_) | Slot::Empty => unreachable!("`force` returned"),
        }
    }

    #[cold]
    #[track_caller]
    fn fill(&self) {
        self.once.call(NAME, false, |_| {
            let slot = self.slot.get();
            // SAFETY: one initializer runs at a time, and nobody reads before it is completed.
            let Slot::Initializer(f) = mem::replace(unsafe { &mut *slot }, Slot::Empty) else {
                unreachable!("a lock whose initializer failed is poisoned")
            };
            let value = f();
            // SAFETY: as above. What is overwritten is `Empty`, so nothing of the user's runs here.
            unsafe { *slot = Slot::Value(value) };
            End::Complete
        });
    }
}

impl<T, F> LazyLock<T, F> {
    /// The value, if it has been made. Does not wait.
    #[inline]
    pub fn get(this: &LazyLock<T, F>) -> Option<&T> {
        match this.once.is_completed() {
            // SAFETY: completed.
            true => Some(unsafe { this.value_unchecked() }),
            false => None,
        }
    }

    /// Waits until the value has been made by somebody else, but no longer than `timeout`. `None` if it has not. Makes nothing.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// If the initializer does or did, and if the caller runs in it.
    ///
    /// # Examples
    /// ```
    /// # use fibra_sync as sync;
    /// # use std::time::Duration;
    /// static ANSWER: sync::LazyLock<u32> = sync::LazyLock::new(|| 6 * 7);
    /// assert_eq!(sync::LazyLock::wait_timeout(&ANSWER, Duration::from_millis(1)), None);
    /// assert_eq!(*ANSWER, 42);
    /// assert_eq!(sync::LazyLock::wait_timeout(&ANSWER, Duration::from_millis(1)), Some(&42));
    /// ```
    #[track_caller]
    pub fn wait_timeout(this: &LazyLock<T, F>, timeout: Duration) -> Option<&T> {
        this.once.await_success(NAME, time::deadline(timeout));
        LazyLock::get(this)
    }

    /// As [`wait_timeout`](LazyLock::wait_timeout), but not beyond `deadline`.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// As for [`wait_timeout`](LazyLock::wait_timeout).
    #[track_caller]
    pub fn wait_deadline(this: &LazyLock<T, F>, deadline: Instant) -> Option<&T> {
        this.once.await_success(NAME, Some(deadline));
        LazyLock::get(this)
    }

    /// The value, to be changed, if it has been made.
    pub fn get_mut(this: &mut LazyLock<T, F>) -> Option<&mut T> {
        match this.slot.get_mut() {
            Slot::Value(value) => Some(value),
            Slot::Initializer(_) | Slot::Empty => None,
        }
    }

    /// # Safety
    /// `once` is completed, as this thread has seen.
    #[inline]
    unsafe fn value_unchecked(&self) -> &T {
        // SAFETY: completed, so nobody writes to the slot while the lock is shared.
        match unsafe { &*self.slot.get() } {
            Slot::Value(value) => value,
            // SAFETY: completed, so it is a value.
            Slot::Initializer(_) | Slot::Empty => unsafe { std::hint::unreachable_unchecked() },
        }
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    /// As [`force`](LazyLock::force).
    #[inline]
    #[track_caller]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T, F: FnOnce() -> T> DerefMut for LazyLock<T, F> {
    /// As [`force_mut`](LazyLock::force_mut).
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        LazyLock::force_mut(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    /// One that makes `T`'s default.
    fn default() -> Self {
        LazyLock::new(T::default)
    }
}

// An initializer that panics poisons the lock.
impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}
impl<T: UnwindSafe + RefUnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("LazyLock");
        match LazyLock::get(self) {
            Some(value) => tuple.field(value),
            None => tuple.field(&format_args!("<uninit>")),
        };
        tuple.finish()
    }
}
