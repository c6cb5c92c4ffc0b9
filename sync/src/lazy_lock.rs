//! `LazyLock`: a value that is made at its first use.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::budget;
use crate::once::Name;
use crate::once_cell::OnceCell;
use crate::wait;

const NAME: Name = Name("LazyLock");

/// Holds a value that its first use makes.
///
/// Has the interface of [`std::sync::LazyLock`]. A use after the first costs one load. The initializer runs shielded from
/// the cancellation of its task.
///
/// # Fairness
/// The value wakes all its waiters.
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
    cell: OnceCell<T>,
    /// Until the run takes it.
    initializer: Mutex<Option<F>>,
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// Creates a lock that calls `f` for its value at the first use.
    pub const fn new(f: F) -> Self {
        LazyLock { cell: OnceCell::new(), initializer: Mutex::new(Some(f)) }
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
        wait::point();
        match this.cell.value.get() {
            Some(value) => value,
            None => this.fill(),
        }
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
        this.cell.value.get_mut().expect("`force` returned")
    }

    #[cold]
    #[track_caller]
    fn fill(&self) -> &T {
        let Ok(value) = self.cell.fill(NAME, false, || {
            let f = self.initializer.lock().unwrap_or_else(PoisonError::into_inner).take();
            let f = f.expect("one run takes it: a lock whose initializer failed is poisoned");
            Ok::<T, Infallible>(f())
        });
        value
    }
}

impl<T, F> LazyLock<T, F> {
    /// Returns the value if it has been made. Does not wait.
    #[inline]
    pub fn get(this: &LazyLock<T, F>) -> Option<&T> {
        wait::point();
        budget::found(this.cell.value.get())
    }

    /// Waits until another caller has made the value, at most for `timeout`.
    ///
    /// It makes nothing.
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
    /// # use std::time::{Duration, Instant};
    /// static ANSWER: sync::LazyLock<u32> = sync::LazyLock::new(|| 6 * 7);
    /// assert_eq!(sync::LazyLock::wait_timeout(&ANSWER, Duration::from_millis(1)), None);
    /// assert_eq!(*ANSWER, 42);
    /// assert_eq!(sync::LazyLock::wait_timeout(&ANSWER, Duration::from_millis(1)), Some(&42));
    /// assert_eq!(sync::LazyLock::wait_deadline(&ANSWER, Instant::now()), Some(&42));
    /// ```
    #[track_caller]
    pub fn wait_timeout(this: &LazyLock<T, F>, timeout: Duration) -> Option<&T> {
        this.cell.wait_to(NAME, false, time::deadline(timeout))
    }

    /// Waits until another caller has made the value, at most until `deadline`.
    ///
    /// Makes nothing.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Those of [`wait_timeout`](LazyLock::wait_timeout).
    #[track_caller]
    pub fn wait_deadline(this: &LazyLock<T, F>, deadline: Instant) -> Option<&T> {
        this.cell.wait_to(NAME, false, Some(deadline))
    }

    /// Returns the value for changes, if it has been made.
    pub fn get_mut(this: &mut LazyLock<T, F>) -> Option<&mut T> {
        this.cell.value.get_mut()
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
        self.cell.fmt_as("LazyLock", f)
    }
}
