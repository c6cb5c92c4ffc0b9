//! Scopes: tasks that borrow from the stack of their spawner.
//!
//! Borrowed values live until the scope's wait is over, and the wait ends only when every child has
//! released them. The runner counts a child out as its very last act, even if the child ends
//! un-run. By then its closure, its captures and an unclaimed result are gone. Handles cannot leave
//! the scope, except by a leak, and then only their memory leaks.
//!
//! The shared state lies in the frame of the scope, and each child's link to it in the child's own
//! allocation. A child costs a task and two short locks.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::panic::{self, AssertUnwindSafe, RefUnwindSafe, catch_unwind};

use crate::api::builder::Builder;
use crate::api::join_handle::JoinHandle;
use crate::api::scope_children::{Children, Lost};
use crate::base::abort::Bomb;
use crate::scheduler::current;
use crate::scheduler::simulated::point;
use crate::scheduler::worker::Worker;
use crate::sleep::cancel_points;
use crate::sleep::queue::wait::Until;
use crate::tasks::cancel;
use crate::tasks::context;
use crate::tasks::forbid;
use crate::tasks::header::{Container, TaskRef};
use crate::tasks::join_error::JoinError;
use crate::tasks::raw::{self, TaskHooks};
use crate::tasks::task::Task;

/// Spawns tasks that borrow; made by [`scope`](scope()).
pub struct Scope<'scope, 'env: 'scope> {
    /// Lies in the frame of [`scope`], where it stays until all children are counted out.
    children: Children,
    /// Invariant in both, as `std::thread::Scope` is.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Runs `f`, waits for all tasks that it spawns, and returns its value.
///
/// The tasks may borrow from the caller's frame: the wait takes place however `f` ends.
///
/// # Cancellation
/// A cancellation point. A scope is never left early: when its task is cancelled it cancels its
/// children, waits for them to unwind, and then unwinds. It does so as well when the end of the
/// runtime has cancelled an unjoined child. In a destructor that runs while its task unwinds, and
/// inside of [`shield`](crate::tasks::shield::shield), it is no cancellation point, and the end of
/// the runtime leaves its children alone.
///
/// # Panics
/// Resumes a panic of `f`, which cancels no child. To end children then, run them inside of a
/// [`CancelToken`](crate::api::cancel_token::CancelToken)'s `scope` while `f` holds its drop guard.
///
/// Panics when an unjoined child has panicked, or could not start and was not cancelled. Off a
/// task, as on a thread of the blocking pool, it also panics when the end of the runtime has
/// cancelled such a child.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let mut numbers = [1, 2, 3, 4];
/// let (left, right) = numbers.split_at_mut(2);
/// fibra::scope(|s| {
///     s.spawn(|| left.reverse());
///     s.spawn(|| right.reverse());
/// });
/// assert_eq!(numbers, [2, 1, 4, 3]);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let owner = context::task().map_or(0, |task| task.header().id.get());
    let children = Children::new(cancel::CAN_UNWIND && !cancel_points::may_unwind(), owner);
    let scope = Scope { children, scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    let lost = scope.children.await_all(result.is_err());
    match (result, lost) {
        (Err(payload), _) => panic::resume_unwind(payload),
        (Ok(_), Some(Lost::Panicked)) => panic!("a task of the scope panicked"),
        (Ok(_), Some(Lost::NotStarted(error))) => panic!("a task of the scope has not run: {error}"),
        (Ok(_), Some(Lost::Ended)) if cancel::CAN_UNWIND => {
            cancel_points::end_with_others("the end of the runtime has cancelled a task of the scope")
        }
        // Where nothing can be unwound the caller goes on.
        (Ok(value), Some(Lost::Ended) | None) => {
            cancel_points::cancellation_point();
            value
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a task that may borrow from outside the scope.
    ///
    /// # Panics
    /// Panics off a runtime, and where [`forbid_suspend`](crate::tasks::forbid::forbid_suspend)
    /// forbids the scope to wait for the task. A scope that has tasks and must not wait for them
    /// ends the process.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let words = ["ready", "set"];
    /// let letters = fibra::scope(|scope| {
    ///     let first = scope.spawn(|| words[0].len());
    ///     first.join().unwrap() + words[1].len()
    /// });
    /// assert_eq!(letters, 8);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_as(Builder::new(), f)
    }

    /// Spawns the task that `builder` describes, as [`spawn`](Scope::spawn) does.
    ///
    /// # Panics
    /// As [`spawn`](Scope::spawn).
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let builder = fibra::task::Builder::new().name("child");
    /// let name = fibra::scope(|scope| {
    ///     let child = scope.spawn_as(builder, || fibra::task::current().name().map(String::from));
    ///     child.join().unwrap()
    /// });
    /// assert_eq!(name.as_deref(), Some("child"));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_as<F, T>(&'scope self, builder: Builder, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        forbid::check_may_await_tasks();
        let child = Child { children: &self.children, entry: Cell::new(None) };
        // SAFETY: `f` and `T` are `Send`. What they borrow outlives 'scope, which does not end before the scope's wait; and
        // that waits until the child's hooks were told of its end, after closure and result are gone. A result that a handle
        // owns is reached through the handle alone, which does not outlive 'scope.
        let task = unsafe { builder.spawn_erased(f, child) };
        ScopedJoinHandle { task, scope: PhantomData }
    }

    /// Spawns a task that may borrow from outside the scope, and stays on the current worker.
    ///
    /// `f` and its value need not be `Send`.
    ///
    /// # Panics
    /// As [`spawn`](Scope::spawn); and off a worker, as on a thread of the blocking pool.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(2).build()?.run(|| {
    /// let count = std::cell::Cell::new(1);
    /// fibra::scope(|scope| {
    ///     scope.spawn_local(|| count.set(count.get() + 1));
    /// });
    /// assert_eq!(count.get(), 2);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_local<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + 'scope,
        T: 'scope,
    {
        self.spawn_local_as(Builder::new(), f)
    }

    /// Spawns the task that `builder` describes, as [`spawn_local`](Scope::spawn_local) does.
    ///
    /// # Panics
    /// As [`spawn_local`](Scope::spawn_local).
    #[track_caller]
    pub fn spawn_local_as<F, T>(&'scope self, builder: Builder, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + 'scope,
        T: 'scope,
    {
        forbid::check_may_await_tasks();
        let child = Child { children: &self.children, entry: Cell::new(None) };
        // SAFETY: as in `spawn_as`; the link to the scope may be dropped on any thread.
        let task = unsafe { builder.spawn_local_borrowing(f, child) };
        ScopedJoinHandle { task, scope: PhantomData }
    }
}

impl Scope<'_, '_> {
    /// Cancels all live tasks of the scope, and all later ones.
    pub(crate) fn cancel_children(&self) {
        self.children.cancel_all();
    }
}

/// Tells the scope of a child. Lies in the task.
struct Child<'scope> {
    /// Valid until the child is counted out. A handle, which may ask after that, does not outlive the scope.
    children: &'scope Children,
    /// The child and its key, once it is made.
    entry: Cell<Option<(TaskRef, usize)>>,
}

impl Child<'_> {
    /// Returns what the unclaimed error of the child means for the scope; `None` for a
    /// cancellation.
    fn lost(&self, error: &JoinError) -> Option<Lost> {
        if error.is_panic() {
            return Some(Lost::Panicked);
        }
        let header = self.entry.get()?.0.header();
        if header.cancel_flags.is_asked() {
            return None;
        }
        if error.is_not_started() && !header.cancel_flags.is_cancelled() {
            return Some(Lost::NotStarted(error.to_string()));
        }
        let ends = || current::runtime().is_some_and(|runtime| runtime.is_ending());
        (!header.is_sheltered() && ends()).then_some(Lost::Ended)
    }
}

impl TaskHooks for Child<'_> {
    const AWAITS: bool = true;
    const CONTAINER: Option<Container> = Some(Container {
        kind: "scope",
        pointer: offset_of!(Child<'static>, children),
        size: size_of::<Children>(),
        owner: Some(Children::OWNER),
    });

    fn made(&self, task: TaskRef) {
        if self.children.shelters() {
            task.header().shelter();
        }
        let (key, is_cancelled) = self.children.enter(task);
        self.entry.set(Some((task, key)));
        if is_cancelled {
            task.header().cancel_flags.set_cancelled();
        }
    }

    fn unclaimed(&self, error: &mut JoinError) {
        if let Some(lost) = self.lost(error) {
            self.children.lose(lost);
        }
    }

    fn ended(&self) {
        if let Some((_, key)) = self.entry.get() {
            self.children.leave(key);
        }
    }
}

impl Children {
    fn cancel_all(&self) {
        self.cancel().iter().for_each(Task::cancel);
    }

    /// Waits until every child is counted out, and reports a child without a result.
    ///
    /// `unwinding` is true if the scope's closure has panicked, perhaps by a cancellation.
    fn await_all(&self, unwinding: bool) -> Option<Lost> {
        point();
        if self.alive() > 0 {
            // The frame must not be left while children borrow from it. A leaked guard may forbid the
            // wait, which then panics.
            let bomb = Bomb::of_user("the wait for the tasks of a scope has unwound");
            if (unwinding && cancel_points::is_hit()) || !self.wait(Until::report(None)) {
                self.cancel_all();
                self.wait(Until::shielded(None));
            }
            bomb.defuse();
        }
        self.take_lost()
    }
}

/// Owns the right to the result of a task of a [`Scope`].
pub struct ScopedJoinHandle<'scope, T> {
    task: JoinHandle<T>,
    scope: PhantomData<&'scope ()>,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the task to end and takes its result.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Errors
    /// As for [`JoinHandle::join`].
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let sum = fibra::scope(|scope| {
    ///     let halves = [1, 2].map(|n| scope.spawn(move || n));
    ///     halves.map(|half| half.join().unwrap()).iter().sum::<i32>()
    /// });
    /// assert_eq!(sum, 3);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        self.task.join()
    }

    /// Returns true once the task has ended and its result is there.
    ///
    /// A look that finds it running counts against the operation budget, so the caller may yield:
    /// a loop over it lets other tasks run.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// fibra::scope(|scope| {
    ///     let child = scope.spawn(fibra::task::park);
    ///     assert!(!child.is_finished());
    ///     child.cancel();
    ///     assert!(child.join().unwrap_err().is_cancelled());
    /// });
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends a forked child that no worker has begun, with what `error` says. Returns false if a worker has begun it.
    pub(crate) fn take_back(&self, error: impl FnOnce() -> JoinError) -> bool {
        let taken_back = raw::take_back(self.task().as_ref(), error);
        if taken_back {
            current::with_worker(Worker::note_taken_back);
        }
        taken_back
    }

    /// Returns the task.
    pub fn task(&self) -> &Task {
        self.task.task()
    }

    /// Asks the task to end; see [`Task::cancel`].
    pub fn cancel(&self) {
        self.task().cancel();
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").field("task", self.task()).finish_non_exhaustive()
    }
}

// As std's, so that a child can be spawned inside of a `catch_unwind`: the set of children is changed under its lock alone.
impl RefUnwindSafe for Scope<'_, '_> {}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("alive", &self.children.alive()).finish_non_exhaustive()
    }
}

impl Builder {
    /// Spawns the task into `scope`, as [`Scope::spawn_as`] does.
    ///
    /// The name is the one of std's thread builder.
    ///
    /// # Panics
    /// As [`Scope::spawn`].
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let builder = fibra::task::Builder::new().name("child");
    /// assert_eq!(fibra::scope(|scope| builder.spawn_scoped(scope, || 1).join().unwrap()), 1);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        f: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        scope.spawn_as(self, f)
    }
}
