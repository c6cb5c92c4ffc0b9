//! Scopes: tasks that borrow from the stack of the one who spawns them.
//!
//! What a child borrows lives until the scope's wait is over, and that ends only when every child has let go of it. The
//! runner of a child counts it out as its very last act, after its closure, its captures and, where nobody asks for it,
//! its result are gone; also for a child that ends un-run. Handles cannot leave the scope, except by being leaked, and
//! then they leak memory and nothing else.
//!
//! What scope and children share lies in the frame of the scope, and each child's link to it in the child's own
//! allocation: a child costs what a task costs, and two short locks.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::bounds::Look;
use super::raw::Kin;
use super::{Builder, JoinError, JoinHandle, Task, TaskRef};
use crate::current;
use crate::report::Bomb;
use crate::ring::{Link, Ring};
use crate::wait::{self, Asleep, Lock, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// A scope to spawn borrowing tasks in; see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    /// Lies in the frame of [`scope`], where it stays until all children are counted out.
    family: Family,
    /// Invariant in both, as `std::thread::Scope` is.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// What a scope and its children share.
struct Family {
    state: Lock<State>,
}

struct State {
    /// The children that are not counted out.
    children: Ring<Member>,
    alive: usize,
    /// The children were cancelled; so is each that comes after.
    cancelled: bool,
    parent: Option<RawWake>,
    /// A child whose handle nobody joined.
    lost: Option<Lost>,
}

/// Why a child has no result that somebody may count on.
enum Lost {
    Panicked,
    /// The error in words.
    NotStarted(String),
}

/// Runs `f`, which may spawn tasks that borrow from here, and returns when all of them have ended, whatever unwinds.
///
/// # Cancellation
/// A cancellation point. A scope is never left early: when its task is cancelled it cancels its children, waits for them
/// to unwind, and unwinds then.
///
/// # Panics
/// With the panic of `f`; or, when a child that nobody joined has panicked, or could not start and was not cancelled, with a
/// message that says so.
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
    let scope = Scope { family: Family::new(), scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    scope.family.await_children(result.is_err());
    let lost = scope.family.state.lock().lost.take();
    match (result, lost) {
        (Err(payload), _) => panic::resume_unwind(payload),
        (Ok(_), Some(Lost::Panicked)) => panic!("a task of the scope panicked"),
        (Ok(_), Some(Lost::NotStarted(error))) => panic!("a task of the scope has not run: {error}"),
        (Ok(value), None) => {
            wait::cancellation_point();
            value
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a task that may borrow from outside the scope.
    ///
    /// # Panics
    /// Off a runtime; and where [`forbid_suspend`](super::forbid_suspend) forbids the scope to wait for the task. One that is
    /// forbidden to wait for tasks which it has ends the process.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_as(Builder::new(), f)
    }

    /// As [`spawn`](Scope::spawn), for a task with a name or a stack of its own.
    ///
    /// # Panics
    /// As [`spawn`](Scope::spawn).
    #[track_caller]
    pub fn spawn_as<F, T>(&'scope self, builder: Builder, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        super::forbid::check_may_suspend();
        let child = Child(Link::new(Member { family: NonNull::from(&self.family), task: Cell::new(None) }));
        // SAFETY: `f` and `T` are `Send`. What they borrow outlives 'scope, which does not end before the scope's wait; and
        // that waits until the child's kin was told of its end, after closure and result are gone. A result that a handle
        // owns is reached through the handle alone, which does not outlive 'scope.
        let task = unsafe { builder.spawn_kin(f, child) };
        ScopedJoinHandle { task, scope: PhantomData }
    }
}

/// A child's place in the family. Lies in the task, so it is there until it was told of the end.
struct Child(Link<Member>);

struct Member {
    /// There until the child is counted out.
    family: NonNull<Family>,
    /// The child itself, once it is made.
    task: Cell<Option<TaskRef>>,
}

impl Child {
    fn family(&self) -> &Family {
        // SAFETY: the family lies in the scope's frame, which is not left before this child is counted out; and a handle,
        // which may ask after that, does not outlive the scope.
        unsafe { self.0.data().family.as_ref() }
    }

    /// Nobody counts on a child that was cancelled.
    fn is_cancelled(&self) -> bool {
        self.0.data().task.get().is_some_and(|task| task.header().is_cancelled())
    }
}

impl Kin for Child {
    const AWAITS: bool = true;

    fn made(&self, task: TaskRef) {
        self.0.data().task.set(Some(task));
        let mut state = self.family().state.lock();
        state.alive += 1;
        // SAFETY: the link lies in the task, which is made and stays; `ended` takes it out, under this lock.
        unsafe { state.children.push_back(&self.0) };
        if state.cancelled {
            task.header().set_cancelled();
        }
    }

    fn unclaimed(&self, error: &JoinError) {
        let lost = match error {
            error if error.is_panic() => Lost::Panicked,
            error if error.is_not_started() && !self.is_cancelled() => Lost::NotStarted(error.to_string()),
            _ => return,
        };
        // What another one left there is dropped without the lock.
        let _other = self.family().state.lock().lost.replace(lost);
    }

    fn ended(&self) {
        let parent = {
            let mut state = self.family().state.lock();
            // SAFETY: linked by `made`, into this ring.
            unsafe { state.children.remove(&self.0) };
            state.alive -= 1;
            match state.alive {
                0 => state.parent.take(),
                _ => None,
            }
        };
        // The family may be gone from here on: its frame is left by one who took the lock after this.
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

impl Family {
    fn new() -> Self {
        let state = State { children: Ring::new(), alive: 0, cancelled: false, parent: None, lost: None };
        Family { state: Lock::new(state) }
    }

    fn cancel_children(&self) {
        let mut children: Vec<Task> = Vec::new();
        loop {
            // Room is made without the lock.
            let alive = self.state.lock().alive;
            children.reserve(alive);
            let mut state = self.state.lock();
            if state.alive <= children.capacity() {
                state.cancelled = true;
                // A child that is in the ring has not ended, so the runtime's count keeps it.
                state.children.for_each(|member| children.extend(member.task.get().map(Task::counted)));
                break;
            }
        }
        children.iter().for_each(Task::cancel);
    }

    /// Waits until every child is counted out. `unwinding`: the scope's closure has panicked, perhaps by a cancellation.
    fn await_children(&self, unwinding: bool) {
        if self.is_alone() {
            return;
        }
        let until = UntilAlone { family: self };
        // A frame that children borrow from must not be left, whatever happens in here: a guard that was forgotten may forbid
        // the wait.
        let bomb = Bomb::of_user("the wait for the tasks of a scope has unwound");
        let cancelled = || current::task().is_some_and(|task| task.header().hit(Look::Clock).is_some());
        let cut_short =
            (unwinding && cancelled()) || wait::sleep_or_cancel(&until, None) == Waking::Cancelled;
        if cut_short {
            self.cancel_children();
        }
        while !self.is_alone() {
            _ = wait::sleep_shielded(&until, None);
        }
        bomb.defuse();
    }

    fn is_alone(&self) -> bool {
        self.state.lock().alive == 0
    }
}

struct UntilAlone<'a> {
    family: &'a Family,
}

impl WaitStrategy for UntilAlone<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut state = self.family.state.lock();
        if state.alive == 0 {
            return Asleep::Rouse;
        }
        // SAFETY: the wake is taken under this lock, and `before_awake` answers `Served` once it is.
        state.parent = Some(unsafe { me.raw() });
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        let withdrawn = self.family.state.lock().parent.take().is_some();
        if withdrawn || why == Waking::Notified { Withdrawal::Withdrawn } else { Withdrawal::Served }
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
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        self.task.join()
    }

    /// True once the task has ended and its result is there.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// The task itself.
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

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("alive", &self.family.state.lock().alive).finish_non_exhaustive()
    }
}
