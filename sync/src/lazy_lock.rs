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

/// Holds a value that its first use makes.
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
    /// The initializer was taken out and has not returned.
    Empty,
}

// SAFETY: a shared lock hands out `&T` to all threads, and moves the value in from one thread that another may drop;
// `F` is only ever moved, by one thread.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// Creates a lock whose value `f` will make at its first use.
    pub const fn new(f: F) -> Self {
        LazyLock { once: Once::new(), slot: UnsafeCell::new(Slot::Initializer(f)) }
    }

    /// Returns the value, and makes it if this is its first use.
    ///
    /// While another caller makes it, this waits for the outcome without a limit, as in std.
    /// [`wait_timeout`](LazyLock::wait_timeout) waits with a limit and makes nothing. [`get`](LazyLock::get) does not wait.
    ///
    /// # Cancellation
    /// No cancellation point, as for a lock. The initializer runs shielded.
    ///
    /// # Panics
    /// Panics if the initializer does, and then at every later use. Panics if the caller is the initializer.
    ///
    /// # Examples
    /// ```
    /// # use fibra_sync as sync;
    /// let answer = sync::LazyLock::new(|| 6 * 7);
    /// assert_eq!(sync::LazyLock::get(&answer), None);
    /// assert_eq!(*sync::LazyLock::force(&answer), 42);
    /// assert_eq!(sync::LazyLock::get(&answer), Some(&42));
    /// ```
    #[inline]
    #[track_caller]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        if !this.once.is_completed() {
            this.fill();
        }
        // SAFETY: `fill` returns when it is completed.
        unsafe { this.value_unchecked() }
    }

    /// Returns the value for changes, and makes it if this is its first use.
    ///
    /// # Panics
    /// Panics if the initializer does, and then at every later use.
    ///
    /// # Examples
    /// ```
    /// # use fibra_sync as sync;
    /// let mut answer = sync::LazyLock::new(|| 6);
    /// assert_eq!(sync::LazyLock::get_mut(&mut answer), None);
    /// *sync::LazyLock::force_mut(&mut answer) *= 7;
    /// assert_eq!(*answer, 42);
    /// ```
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
            // SAFETY: one initializer runs at a time, and no caller reads before it is completed.
            let Slot::Initializer(f) = mem::replace(unsafe { &mut *slot }, Slot::Empty) else {
                unreachable!("a lock whose initializer failed is poisoned")
            };
            let value = f();
            // SAFETY: as above. `Empty` is overwritten, so no destructor runs here.
            unsafe { *slot = Slot::Value(value) };
            End::Complete
        });
    }
}

impl<T, F> LazyLock<T, F> {
    /// Returns the value if it has been made. Does not wait.
    #[inline]
    pub fn get(this: &LazyLock<T, F>) -> Option<&T> {
        match this.once.is_completed() {
            // SAFETY: completed.
            true => Some(unsafe { this.value_unchecked() }),
            false => None,
        }
    }

    /// Waits until another caller has made the value, at most for `timeout`. Makes nothing.
    ///
    /// Returns `None` if the time ran out.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if the initializer does or did, and if the caller is the initializer.
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

    /// Waits until another caller has made the value, at most to `deadline`. Makes nothing.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Those of [`wait_timeout`](LazyLock::wait_timeout).
    #[track_caller]
    pub fn wait_deadline(this: &LazyLock<T, F>, deadline: Instant) -> Option<&T> {
        this.once.await_success(NAME, Some(deadline));
        LazyLock::get(this)
    }

    /// Returns the value for changes, if it has been made.
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
        // SAFETY: completed, so the slot is not written while the lock is shared.
        match unsafe { &*self.slot.get() } {
            Slot::Value(value) => value,
            // SAFETY: completed, so it is a value.
            Slot::Initializer(_) | Slot::Empty => unsafe { std::hint::unreachable_unchecked() },
        }
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    /// Calls [`force`](LazyLock::force).
    #[inline]
    #[track_caller]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T, F: FnOnce() -> T> DerefMut for LazyLock<T, F> {
    /// Calls [`force_mut`](LazyLock::force_mut).
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        LazyLock::force_mut(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    /// Creates a lock that makes the default of `T`.
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
