//! Scopes: tasks that borrow from the stack of the one who spawns them.
//!
//! What a child borrows lives until the scope's wait is over, and that ends only when every child has let go of it: a
//! child counts itself out as its very last act, after its closure, its captures and, where nobody asks for it, its
//! result are gone. The count is kept by a value that the child owns, so it is also right for a child that is dropped
//! un-run; a handle or a guard that is leaked leaks memory and nothing else.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use slab::Slab;

use super::bounds::Look;
use super::cancel;
use super::{Builder, JoinError, JoinHandle, Task};
use crate::current;
use crate::report::Bomb;
use crate::wait::{self, Asleep, Lock, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// A scope to spawn borrowing tasks in; see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    family: Arc<Family>,
    /// Invariant in both, as `std::thread::Scope` is.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// What a scope and its children share.
struct Family {
    state: Lock<State>,
    /// A child panicked whose handle nobody joined.
    panicked: AtomicBool,
}

struct State {
    /// By slot: the number of the child, and its handle once its spawner has entered it.
    children: Slab<(u64, Option<Task>)>,
    spawned: u64,
    /// The children were cancelled; so is each that comes after.
    cancelled: bool,
    parent: Option<RawWake>,
}

/// Runs `f`, which may spawn tasks that borrow from here, and returns when all of them have ended, whatever unwinds.
///
/// # Cancellation
/// A cancellation point. A scope is never left early: when its task is cancelled it cancels its children, waits for them
/// to unwind, and unwinds then.
///
/// # Panics
/// With the panic of `f`; or, when a child panicked that nobody joined, with a message that says so.
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
    let state = State { children: Slab::new(), spawned: 0, cancelled: false, parent: None };
    let family = Arc::new(Family { state: Lock::new(state), panicked: AtomicBool::new(false) });
    let scope = Scope { family, scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    scope.family.await_children(result.is_err());
    match result {
        Err(payload) => panic::resume_unwind(payload),
        // Relaxed: the children have ended, which the lock has published.
        Ok(_) if scope.family.panicked.load(Ordering::Relaxed) => panic!("a task of the scope panicked"),
        Ok(value) => {
            wait::cancellation_point();
            value
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a task that may borrow from outside the scope.
    ///
    /// # Panics
    /// Off a runtime.
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
    /// Off a runtime.
    #[track_caller]
    pub fn spawn_as<F, T>(&'scope self, builder: Builder, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let shared =
            current::runtime().expect("a scope spawns on a runtime: start one with `fibra::run(|| ...)`");
        let result = Arc::new(Packet { result: Mutex::new(None), family: Arc::clone(&self.family) });
        let membership = Family::admit(&self.family);
        let (slot, number) = (membership.slot, membership.number);
        let child = Child { f: Some(f), packet: Arc::clone(&result), _membership: membership };
        // SAFETY: `f` and `T` are `Send`. What they borrow outlives 'scope, which does not end before the scope's wait; and
        // that waits for the membership, the last thing of the child to go. The task's own result is `()`.
        let task = unsafe { builder.spawn_erased(&shared, move || child.run()) };
        self.family.enter(slot, number, task.task());
        ScopedJoinHandle { task, packet: result, scope: PhantomData }
    }
}

/// A child's closure with all that must go before the child is counted out: fields are dropped in this order.
struct Child<F, T> {
    f: Option<F>,
    packet: Arc<Packet<T>>,
    _membership: Membership,
}

impl<F: FnOnce() -> T, T> Child<F, T> {
    fn run(mut self) {
        let f = self.f.take().expect("a child runs once");
        let result = catch_unwind(AssertUnwindSafe(f));
        let result = result.map_err(|payload| match current::task() {
            Some(task) => cancel::judge(task, payload),
            None => unreachable!("a child runs in a task"),
        });
        *self.packet.lock() = Some(result);
    }
}

/// Where a child leaves its result.
struct Packet<T> {
    result: Mutex<Option<Result<T, JoinError>>>,
    family: Arc<Family>,
}

impl<T> Packet<T> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Result<T, JoinError>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Packet<T> {
    fn drop(&mut self) {
        let unclaimed = self.result.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if matches!(&unclaimed, Some(Err(error)) if error.is_panic()) {
            // Relaxed: published by the lock under which the child is counted out.
            self.family.panicked.store(true, Ordering::Relaxed);
        }
        // A destructor of the user's may panic; its message has been printed, and this must go on.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(unclaimed))) {
            super::raw::drop_payload(payload);
        }
    }
}

/// Counts a child out when dropped.
struct Membership {
    family: Arc<Family>,
    slot: usize,
    number: u64,
}

impl Drop for Membership {
    fn drop(&mut self) {
        let (parent, child) = {
            let mut state = self.family.state.lock();
            let child = state.children.remove(self.slot);
            (if state.children.is_empty() { state.parent.take() } else { None }, child)
        };
        drop(child);
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

impl Family {
    fn admit(this: &Arc<Self>) -> Membership {
        let mut state = this.state.lock();
        state.spawned += 1;
        let number = state.spawned;
        let slot = state.children.insert((number, None));
        drop(state);
        Membership { family: Arc::clone(this), slot, number }
    }

    /// Keeps a handle to a child, for the case that it is to be cancelled; unless it has gone already.
    fn enter(&self, slot: usize, number: u64, task: &Task) {
        let mut state = self.state.lock();
        let cancelled = state.cancelled;
        if let Some((known, child)) = state.children.get_mut(slot)
            && *known == number
        {
            *child = Some(task.clone());
        }
        drop(state);
        if cancelled {
            task.cancel();
        }
    }

    fn cancel_children(&self) {
        let children: Vec<Task> = {
            let mut state = self.state.lock();
            state.cancelled = true;
            state.children.iter().filter_map(|(_, (_, child))| child.clone()).collect()
        };
        children.iter().for_each(Task::cancel);
    }

    /// Waits until every child is counted out. `unwinding`: the scope's closure has panicked, perhaps by a cancellation.
    fn await_children(&self, unwinding: bool) {
        let until = UntilAlone { family: self };
        // A frame that children borrow from must not be left, whatever happens in here.
        let bomb = Bomb("the wait for the tasks of a scope has unwound");
        let cancelled = || current::task().is_some_and(|task| task.header().hit(Look::Clock).is_some());
        let cut_short = (unwinding && cancelled())
            || (!self.is_alone() && wait::sleep(&until, None) == Waking::Cancelled);
        if cut_short {
            self.cancel_children();
        }
        while !self.is_alone() {
            _ = wait::sleep_shielded(&until, None);
        }
        bomb.defuse();
    }

    fn is_alone(&self) -> bool {
        self.state.lock().children.is_empty()
    }
}

struct UntilAlone<'a> {
    family: &'a Family,
}

impl WaitStrategy for UntilAlone<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut state = self.family.state.lock();
        if state.children.is_empty() {
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
    task: JoinHandle<()>,
    packet: Arc<Packet<T>>,
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
        self.task.join()?;
        self.packet.lock().take().expect("a child that ran has left its result")
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
        f.debug_struct("Scope")
            .field("alive", &self.family.state.lock().children.len())
            .finish_non_exhaustive()
    }
}
