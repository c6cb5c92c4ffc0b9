//! Task-local values.

#![forbid(unsafe_code)]

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use crate::tasks::context;
use crate::tasks::locals::{CloneValue, Found, Key, Locals};

/// Declares statics of type [`TaskLocal`], of which each task has a value of its own.
///
/// The initializer runs in each task at its first use, and may suspend. A key marked `#[inherit]`
/// is passed on when a task that has a value spawns a task, or forks work as [`join`](fn@crate::join)
/// does. The new task starts with a clone of the value, whose type must be [`Clone`] and [`Send`].
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::cell::Cell;
/// fibra::task_local! {
///     static STEPS: Cell<u32> = Cell::new(0);
///     /// Of the request that the task works for.
///     #[inherit]
///     pub static REQUEST: Cell<u64> = Cell::new(0);
/// }
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// STEPS.set(3);
/// REQUEST.set(17);
/// let seen = fibra::spawn(|| (STEPS.get(), REQUEST.get())).join().unwrap();
/// assert_eq!(seen, (0, 17));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Differences from tokio
/// A key has an initial value, so that every task has one. In the place of `NAME.scope(value, future)` a task calls
/// `set` on a key of a [`Cell`] or a [`RefCell`]. A declaration in tokio's form does not compile, and says so:
/// ```compile_fail
/// fibra_runtime::task_local! { static REQUEST: u64; }
/// ```
///
/// An inherited value is cloned and goes to another thread:
/// ```compile_fail,E0277
/// fibra_runtime::task_local! {
///     #[inherit]
///     static SHARED: std::rc::Rc<u32> = std::rc::Rc::new(0);
/// }
/// ```
/// ```compile_fail,E0277
/// struct Single;
/// fibra_runtime::task_local! {
///     #[inherit]
///     static SINGLE: Single = Single;
/// }
/// ```
#[macro_export]
macro_rules! task_local {
    (@key [$($kept:tt)*] [$($new:ident)+] #[inherit] $($rest:tt)*) => {
        $crate::task_local! { @key [$($kept)*] [inheriting] $($rest)* }
    };
    (@key [$($kept:tt)*] [$($new:ident)+] #[$($attribute:tt)*] $($rest:tt)*) => {
        $crate::task_local! { @key [$($kept)* #[$($attribute)*]] [$($new)+] $($rest)* }
    };
    (@key [$($kept:tt)*] [$new:ident] $vis:vis static $name:ident: $value:ty = $init:expr $(; $($rest:tt)*)?) => {
        $($kept)*
        $vis static $name: $crate::task::TaskLocal<$value> = {
            fn init() -> $value {
                $init
            }
            $crate::task::TaskLocal::$new(init)
        };
        $($crate::task_local! { $($rest)* })?
    };
    (@key [$($kept:tt)*] [$new:ident] $vis:vis static $name:ident: $value:ty $(; $($rest:tt)*)?) => {
        compile_error!(concat!(
            "the task-local `", stringify!($name), "` needs an initial value: `static ", stringify!($name), ": ",
            stringify!($value), " = ...;`. Where tokio has `", stringify!($name), ".scope(value, ...)`, make it a `Cell` or \
             a `RefCell`, and `set` it in the task",
        ));
        $($crate::task_local! { $($rest)* })?
    };
    () => {};
    ($($keys:tt)+) => {
        $crate::task_local! { @key [] [fresh] $($keys)+ }
    };
}

/// Gives each task a value of its own.
///
/// [`task_local!`](crate::task_local) declares it.
///
/// A value is made at the first use in its task, and lives in the task and not in the thread. The
/// end of the task drops its values, the last one made first, before its result can be joined.
/// Destructors may suspend; neither a cancellation nor a deadline cuts them short, and their panics
/// end nothing. Meanwhile a dropped value is not made anew: it cannot be used.
///
/// On a thread that runs no task a key is a thread-local of that thread. So it is in the closure of
/// an [`unblock`](crate::unblock), which runs on another thread. A task on the blocking pool has
/// values of its own.
///
/// # Differences from std
/// An initializer and the closures given to a key may suspend. Tasks can inherit keys, also from
/// the plain thread that spawns them.
///
/// # Panics
/// All but `try_with` panic when the value is gone. All panic when an initializer needs the value
/// that it makes.
///
/// # Examples
/// The reference that `with` lends stays in the task:
/// ```compile_fail,E0521
/// fibra_runtime::task_local! { static NAME: String = String::new(); }
/// let mut kept = None;
/// NAME.with(|name| kept = Some(name));
/// ```
pub struct TaskLocal<T: 'static> {
    init: fn() -> T,
    /// Set for a key that tasks inherit.
    clone: Option<CloneValue>,
    /// Never touched. Statics with interior mutability are not merged, so each key has an address
    /// of its own.
    _alone: AtomicBool,
}

/// Reports that the value is gone: its task or thread is at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AccessError(());

/// Why there is no value to use.
enum Lacking {
    Gone,
    /// Its initializer is running.
    Begun,
}

impl<T: 'static> TaskLocal<T> {
    /// Makes a key that tasks do not inherit, for `task_local!`.
    #[doc(hidden)]
    pub const fn fresh(init: fn() -> T) -> Self {
        TaskLocal { init, clone: None, _alone: AtomicBool::new(false) }
    }

    /// Makes a key that spawned tasks inherit, for `task_local!`.
    #[doc(hidden)]
    pub const fn inheriting(init: fn() -> T) -> Self
    where
        T: Clone + Send,
    {
        TaskLocal { init, clone: Some(clone_value::<T>), _alone: AtomicBool::new(false) }
    }

    /// Runs `f` with the task's value, which is made if there is none.
    ///
    /// Both may suspend.
    ///
    /// # Panics
    /// Panics when the value is gone, and when the initializer needs the value that it makes.
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.try_with(f).unwrap_or_else(|error| gone(error))
    }

    /// Runs `f` with the task's value, for code that may run in destructors.
    ///
    /// # Errors
    /// Fails when the value is gone.
    ///
    /// # Panics
    /// Panics when the initializer needs the value that it makes.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// fibra::task_local! { static NUMBER: u32 = 7; }
    /// assert_eq!(NUMBER.try_with(|number| *number), Ok(7));
    /// assert_eq!(NUMBER.with(|number| number + 1), 8);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        self.reach(self.init, f)
    }

    /// Runs `f` with the value, which `make` makes if there is none.
    #[track_caller]
    fn reach<R>(&'static self, make: impl FnOnce() -> T, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let outcome = context::with_locals(|locals| {
            let value = match locals.find(self.key()) {
                Found::Live(value) => value,
                Found::Nothing => self.enter(locals, make),
                Found::Gone => return Err(Lacking::Gone),
                Found::Begun => return Err(Lacking::Begun),
            };
            Ok(f(value.downcast_ref().expect("entered under this key")))
        });
        match outcome.unwrap_or(Err(Lacking::Gone)) {
            Ok(result) => Ok(result),
            Err(Lacking::Gone) => Err(AccessError(())),
            Err(Lacking::Begun) => {
                panic!("the initializer of a task-local needs the very value that it makes")
            }
        }
    }

    #[cold]
    fn enter(&'static self, locals: &Locals, make: impl FnOnce() -> T) -> Rc<dyn Any> {
        let begun = locals.begin(self.key(), self.clone);
        let value: Rc<dyn Any> = Rc::new(make());
        begun.fill(Rc::clone(&value));
        value
    }

    fn key(&'static self) -> Key {
        ptr::from_ref(self).addr()
    }

    /// Hands `value` to `replace` if there is a value already, and else makes it the value.
    ///
    /// The initializer does not run.
    #[track_caller]
    fn put<V>(&'static self, value: V, wrap: fn(V) -> T, replace: impl FnOnce(&T, V)) {
        let given = Cell::new(Some(value));
        let make = || wrap(given.take().expect("a value is made once"));
        let outcome = self.reach(make, |present| given.take().map(|value| replace(present, value)));
        if let Err(error) = outcome {
            gone(error)
        }
    }
}

fn clone_value<T: Clone + Send + 'static>(value: &dyn Any) -> Box<dyn Any + Send> {
    Box::new(value.downcast_ref::<T>().expect("entered under this key").clone())
}

#[cold]
#[track_caller]
fn gone(error: AccessError) -> ! {
    panic!("{error}; `try_with` tells")
}

impl<T: 'static> TaskLocal<Cell<T>> {
    /// Sets the task's value. The initializer does not run for it.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::cell::Cell;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// fibra::task_local! { static DEPTH: Cell<u32> = Cell::new(1); }
    /// assert_eq!(DEPTH.get(), 1);
    /// DEPTH.set(2);
    /// assert_eq!(DEPTH.replace(3), 2);
    /// assert_eq!(DEPTH.take(), 3);
    /// assert_eq!(DEPTH.get(), 0);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn set(&'static self, value: T) {
        self.put(value, Cell::new, Cell::set);
    }

    /// Returns a copy of the task's value.
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    /// Takes the task's value and leaves the default.
    #[track_caller]
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(Cell::take)
    }

    /// Sets the task's value and returns the earlier one.
    #[track_caller]
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> TaskLocal<RefCell<T>> {
    /// Runs `f` with a borrow of the task's value.
    ///
    /// # Panics
    /// Panics when it is mutably borrowed.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::cell::RefCell;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// fibra::task_local! { static WORDS: RefCell<Vec<&'static str>> = RefCell::new(vec!["one"]); }
    /// WORDS.with_borrow_mut(|words| words.push("two"));
    /// assert_eq!(WORDS.with_borrow(Vec::len), 2);
    /// WORDS.set(vec!["three"]);
    /// assert_eq!(WORDS.replace(Vec::new()), ["three"]);
    /// assert!(WORDS.take().is_empty());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn with_borrow<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| f(&cell.borrow()))
    }

    /// Runs `f` with a mutable borrow of the task's value.
    ///
    /// # Panics
    /// Panics when it is borrowed.
    #[track_caller]
    pub fn with_borrow_mut<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> R {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    /// Sets the task's value. The initializer does not run for it.
    ///
    /// # Panics
    /// Panics when it is borrowed.
    #[track_caller]
    pub fn set(&'static self, value: T) {
        self.put(value, RefCell::new, |cell, value| drop(cell.replace(value)));
    }

    /// Takes the task's value and leaves the default.
    ///
    /// # Panics
    /// Panics when it is borrowed.
    #[track_caller]
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(RefCell::take)
    }

    /// Sets the task's value and returns the earlier one.
    ///
    /// # Panics
    /// Panics when it is borrowed.
    #[track_caller]
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> fmt::Debug for TaskLocal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLocal").finish_non_exhaustive()
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value of this task-local is gone: its task or thread is at its end")
    }
}

impl fmt::Debug for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessError")
    }
}

impl Error for AccessError {}
