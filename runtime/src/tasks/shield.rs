//! Shields: code and values that no cancellation from outside ends.

#![forbid(unsafe_code)]

use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};

use crate::tasks::bounds::Bound;
use crate::tasks::context;
use crate::tasks::thread_deadlines;

/// Runs `f` so that no cancellation and no deadline from outside ends it.
///
/// Outside are a cancel of the task and those of an enclosing [`timeout`](crate::timeout) or
/// [`CancelToken::scope`](crate::api::cancel_token::CancelToken::scope). Those that are set up
/// inside work.
///
/// A cancel that came meanwhile is noticed at the first cancellation point after `f`.
///
/// # Examples
/// ```
/// # use fibra_runtime::{self as fibra, task};
/// # use std::time::Duration;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let mut committed = false;
/// let late = fibra::timeout(Duration::from_millis(1), || {
///     task::shield(|| {
///         fibra::sleep(Duration::from_millis(3));
///         committed = true;
///     });
///     fibra::sleep(Duration::from_secs(60));
/// });
/// assert!(late.is_err() && committed);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn shield<T>(f: impl FnOnce() -> T) -> T {
    match context::task() {
        Some(task) => Bound::shield().run(task.header(), f).expect("nothing is raised for a shield"),
        None => thread_deadlines::shield(f),
    }
}

/// Owns a value that is dropped in a [`shield`].
///
/// A wait in a destructor is a cancellation point where its task does not unwind yet. The unwinding
/// then leaves a destructor half done: of a map of ten values that wait when they are dropped, one
/// is dropped, and nine leak. Keep such values in this, or let their destructors wait in a `shield`.
///
/// # Examples
/// ```
/// # use fibra_runtime::{self as fibra, task};
/// # use std::{collections::HashMap, sync::atomic::{AtomicU32, Ordering}, time::Duration};
/// static ENDED: AtomicU32 = AtomicU32::new(0);
/// struct Session;
/// impl Drop for Session {
///     fn drop(&mut self) {
///         fibra::yield_now(); // says good-bye, for example
///         ENDED.fetch_add(1, Ordering::Relaxed);
///     }
/// }
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let mut sessions = task::Shielded::new(HashMap::new());
/// (0..10).for_each(|id| _ = sessions.insert(id, Session));
/// let late = fibra::timeout(Duration::ZERO, || drop(sessions));
/// assert!(late.is_ok() && ENDED.load(Ordering::Relaxed) == 10);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Shielded<T>(Option<T>);

impl<T> Shielded<T> {
    /// Owns `value`.
    pub const fn new(value: T) -> Self {
        Shielded(Some(value))
    }

    /// Returns the value, which is no longer shielded.
    pub fn into_inner(mut this: Self) -> T {
        this.0.take().expect(OWNED)
    }
}

/// Why a value is there.
const OWNED: &str = "a value is owned until the drop";

impl<T> Deref for Shielded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(OWNED)
    }
}

impl<T> DerefMut for Shielded<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(OWNED)
    }
}

impl<T> Drop for Shielded<T> {
    fn drop(&mut self) {
        if mem::needs_drop::<T>() && self.0.is_some() {
            // In place, since it may be large.
            shield(|| self.0 = None);
        }
    }
}

impl<T: Default> Default for Shielded<T> {
    fn default() -> Self {
        Shielded::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Shielded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shielded").field(&**self).finish()
    }
}
