//! `OnceCell`: a cell that is written once.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::fmt;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::budget;
use crate::once::{End, Name, Once};
use crate::wait;

const NAME: Name = Name("OnceCell");

/// Holds a value that is written once and then shared.
///
/// Has the interface of [`std::sync::OnceLock`], and `get_or_try_init`. A read of a full cell costs one load. The
/// initializer runs shielded from the cancellation of its task.
///
/// # Fairness
/// The value wakes all waiters. After an initializer that failed, the first waiter with an initializer that gets to run
/// begins its own, and the others wait for that one.
///
/// # Deadlocks
/// As for [`Once`](crate::Once#deadlocks).
///
/// # Differences from std
/// Waiting leaves the thread to other tasks. A task that comes back to a cell from its own initializer panics.
///
/// # Examples
/// ```
/// # use fibra_sync as sync;
/// static CONFIG: sync::OnceCell<String> = sync::OnceCell::new();
/// assert_eq!(CONFIG.get(), None);
/// let config = CONFIG.get_or_init(|| "port = 80".to_owned());
/// assert_eq!(config, "port = 80");
/// assert_eq!(CONFIG.set("port = 81".to_owned()), Err("port = 81".to_owned()));
/// ```
pub struct OnceCell<T> {
    once: Once,
    /// Written by the run that completes `once`: no caller waits for another in it.
    pub(crate) value: std::sync::OnceLock<T>,
}

/// Names [`OnceCell`] as std does.
pub type OnceLock<T> = OnceCell<T>;

impl<T> OnceCell<T> {
    /// Creates an empty cell.
    pub const fn new() -> Self {
        OnceCell { once: Once::new(), value: std::sync::OnceLock::new() }
    }

    /// Returns the value if the cell is full. Does not wait.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        wait::point();
        budget::found(self.value.get())
    }

    /// Returns the value for changes, if the cell is full.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// Waits until the cell is full.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if the caller is an initializer of this cell.
    #[track_caller]
    pub fn wait(&self) -> &T {
        self.once.wait_to(NAME, true, None);
        self.completed()
    }

    /// Waits at most `timeout` for the value; returns `None` if there is none.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Those of [`wait`](OnceCell::wait).
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let cell = fibra_sync::OnceCell::new();
    /// assert_eq!(cell.wait_timeout(Duration::from_millis(1)), None);
    /// cell.set(1).unwrap();
    /// assert_eq!(cell.wait(), &1);
    /// assert_eq!(cell.wait_deadline(Instant::now()), Some(&1));
    /// ```
    #[track_caller]
    pub fn wait_timeout(&self, timeout: Duration) -> Option<&T> {
        self.wait_to(NAME, true, time::deadline(timeout))
    }

    /// Waits at most until `deadline` for the value; returns `None` if there is none.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Those of [`wait`](OnceCell::wait).
    #[track_caller]
    pub fn wait_deadline(&self, deadline: Instant) -> Option<&T> {
        self.wait_to(NAME, true, Some(deadline))
    }

    /// Waits until the cell is full, as a future.
    ///
    /// # Cancellation
    /// May be dropped at any time.
    ///
    /// # Panics
    /// Panics if it is polled by an initializer of this cell.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use fibra_sync as sync;
    /// let cell = sync::OnceCell::from(42);
    /// assert_eq!(*fibra::block_on(cell.wait_async()), 42);
    /// ```
    pub async fn wait_async(&self) -> &T {
        self.once.await_completion_async(NAME).await;
        self.completed()
    }

    /// Fills the cell with `value`.
    ///
    /// While another call fills the cell, this waits for the outcome.
    ///
    /// # Cancellation
    /// No cancellation point, as for a lock.
    ///
    /// # Errors
    /// Returns `value` if the cell is full.
    ///
    /// # Examples
    /// ```
    /// let mut cell = fibra_sync::OnceCell::new();
    /// assert_eq!(cell.get(), None);
    /// assert_eq!((cell.set(1), cell.set(2)), (Ok(()), Err(2)));
    /// *cell.get_mut().unwrap() += 10;
    /// assert_eq!((cell.take(), cell.take()), (Some(11), None));
    /// ```
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        self.try_insert(value).map(|_| ()).map_err(|(_, value)| value)
    }

    /// Fills the cell with `value`, and returns a reference to it.
    ///
    /// While another call fills the cell, this waits for the outcome.
    ///
    /// # Cancellation
    /// No cancellation point, as for a lock.
    ///
    /// # Errors
    /// Returns the value of the full cell, and `value`.
    ///
    /// # Examples
    /// ```
    /// # use fibra_sync as sync;
    /// let cell = sync::OnceCell::new();
    /// assert_eq!(cell.try_insert(1), Ok(&1));
    /// assert_eq!(cell.try_insert(2), Err((&1, 2)));
    /// assert_eq!(cell.into_inner(), Some(1));
    /// ```
    #[track_caller]
    pub fn try_insert(&self, value: T) -> Result<&T, (&T, T)> {
        let mut value = Some(value);
        let filled = self.get_or_init(|| value.take().expect("it runs once"));
        match value {
            None => Ok(filled),
            Some(value) => Err((filled, value)),
        }
    }

    /// Returns the value; `f` fills an empty cell first.
    ///
    /// While the initializer of another call runs, this waits for it without a limit, as in std.
    /// [`wait_timeout`](OnceCell::wait_timeout) waits with a limit and fills nothing.
    ///
    /// # Cancellation
    /// No cancellation point, as for a lock. `f` runs shielded.
    ///
    /// # Panics
    /// Panics if `f` does; the cell stays empty, and the next call runs its own initializer. Panics if the caller is an
    /// initializer of this cell.
    #[inline]
    #[track_caller]
    pub fn get_or_init(&self, f: impl FnOnce() -> T) -> &T {
        match self.get_or_try_init(|| Ok::<T, Infallible>(f())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// Returns the value; `f` fills an empty cell first, if it succeeds.
    ///
    /// # Cancellation
    /// Those of [`get_or_init`](OnceCell::get_or_init).
    ///
    /// # Errors
    /// Returns the error of `f`. The cell stays empty.
    ///
    /// # Panics
    /// Those of [`get_or_init`](OnceCell::get_or_init).
    ///
    /// # Examples
    /// ```
    /// let cell = fibra_sync::OnceCell::new();
    /// assert_eq!(cell.get_or_try_init(|| Err("no")), Err("no"));
    /// assert_eq!(cell.get_or_try_init(|| Ok::<_, ()>(1)), Ok(&1));
    /// assert_eq!(cell.get_or_init(|| 2), &1);
    /// assert_eq!(cell.into_inner(), Some(1));
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_or_try_init<E>(&self, f: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        wait::point();
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        self.fill(NAME, true, f)
    }

    #[cold]
    #[track_caller]
    pub(crate) fn fill<E>(&self, name: Name, force: bool, f: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        let mut outcome = Ok(());
        self.once.call(name, force, |_| match f() {
            Ok(value) => {
                let is_first = self.value.set(value).is_ok();
                debug_assert!(is_first, "one run completes");
                End::Complete
            }
            Err(error) => {
                outcome = Err(error);
                End::Incomplete
            }
        });
        outcome.map(|()| self.completed())
    }

    /// Waits for the value, as far as [`Once::wait_to`] does.
    #[track_caller]
    pub(crate) fn wait_to(&self, name: Name, force: bool, deadline: Option<Instant>) -> Option<&T> {
        self.once.wait_to(name, force, deadline);
        self.value.get()
    }

    /// Shows the value, or that there is none, under a name.
    pub(crate) fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result
    where
        T: fmt::Debug,
    {
        let mut tuple = f.debug_tuple(name);
        match self.value.get() {
            Some(value) => tuple.field(value),
            None => tuple.field(&format_args!("<uninit>")),
        };
        tuple.finish()
    }

    /// The value, once the cell is full.
    fn completed(&self) -> &T {
        self.value.get().expect("a run that completes has written the value")
    }

    /// Returns the value if the cell is full. Consumes the cell.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Takes the value out. The cell is empty again.
    pub fn take(&mut self) -> Option<T> {
        mem::take(self).into_inner()
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceCell<T> {
    /// Creates a full cell.
    fn from(value: T) -> Self {
        OnceCell { once: Once::completed(), value: std::sync::OnceLock::from(value) }
    }
}

impl<T: Clone> Clone for OnceCell<T> {
    fn clone(&self) -> Self {
        match self.get() {
            Some(value) => OnceCell::from(value.clone()),
            None => OnceCell::new(),
        }
    }
}

impl<T: PartialEq> PartialEq for OnceCell<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceCell<T> {}

// An initializer that panics leaves the cell empty.
impl<T: UnwindSafe> UnwindSafe for OnceCell<T> {}
impl<T: UnwindSafe + RefUnwindSafe> RefUnwindSafe for OnceCell<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as("OnceCell", f)
    }
}
