//! The thread-local context: which task runs on this thread, and what modules below the scheduler
//! need of its worker.
//!
//! A migratable task may resume on another thread, while the compiler may have kept the address of
//! a thread-local in a register across the suspension. So the address never leaves a function that
//! is not inlined.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use crate::coroutine::stop::Stop;
use crate::tasks::header::TaskRef;
use crate::tasks::live_tasks::LiveTasks;
use crate::tasks::locals::{InheritedLocals, Locals};
use crate::tasks::slab_cache::SlabCache;

/// Holds the part of a worker that modules below the scheduler see.
pub(crate) struct Context {
    /// The task that the worker runs, except inside a panic hook.
    waiting: Cell<Option<TaskRef>>,
    /// The task that the worker runs, inside a panic hook: waits block the thread.
    in_hook: Cell<Option<TaskRef>>,
    /// The memory for tasks.
    pub(crate) slabs: RefCell<SlabCache>,
    /// The count of live tasks of the worker's runtime.
    pub(crate) live: Arc<LiveTasks>,
}

thread_local! {
    static CONTEXT: Cell<Option<NonNull<Context>>> = const { Cell::new(None) };
    /// The task whose closure a thread of a blocking pool runs, for reports.
    static POOL_TASK: Cell<Option<TaskRef>> = const { Cell::new(None) };
    /// The count of live tasks of the runtime that this thread's blocking pool belongs to.
    static POOL_LIVE: RefCell<Option<Arc<LiveTasks>>> = const { RefCell::new(None) };
    /// The task that sleeps for the closure that a thread of a blocking pool runs, where that closure is no task's own.
    static SLEEPER: Cell<Option<TaskRef>> = const { Cell::new(None) };
    /// The values of task-locals on a thread that runs no task.
    static LOCALS: RefCell<Option<ManuallyDrop<Rc<Locals>>>> = const { RefCell::new(None) };
    /// Drops `LOCALS`.
    ///
    /// Destructors of other thread-locals may still use `LOCALS`, so that has no destructor.
    static END_OF_LOCALS: EndOfLocals = const { EndOfLocals };
}

impl Context {
    pub(crate) fn new(live: Arc<LiveTasks>) -> Self {
        Context {
            waiting: Cell::new(None),
            in_hook: Cell::new(None),
            slabs: RefCell::new(SlabCache::new()),
            live,
        }
    }

    /// Returns the task that the worker runs.
    #[inline]
    pub(crate) fn running(&self) -> Option<TaskRef> {
        self.waiting.get().or_else(|| self.in_hook.get())
    }

    pub(crate) fn set_running(&self, task: Option<TaskRef>) {
        self.waiting.set(task);
    }

    /// Returns the task that sleeps when the running code waits.
    ///
    /// Inside a panic hook the thread waits, so there is none.
    #[inline]
    pub(crate) fn waiting_task(&self) -> Option<TaskRef> {
        self.waiting.get()
    }

    /// Returns the task that the caller runs in, as [`task`] does. Not for the worker itself.
    #[inline]
    pub(crate) fn waiting(&self) -> Option<RunningTask> {
        self.waiting_task().map(RunningTask::new)
    }
}

/// Returns the context of this thread.
///
/// The pointer is valid until the calling task suspends: then the thread may change.
#[inline(never)]
fn context() -> Option<NonNull<Context>> {
    CONTEXT.get()
}

/// Runs `f` with the context of this thread, if it is a worker. `f` must not suspend.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Context) -> R) -> Option<R> {
    // SAFETY: the pointer is set by `enter` on this very thread, while the worker exists that has the context.
    context().map(|context| f(unsafe { context.as_ref() }))
}

/// Makes `context` the context of this thread until [`leave`].
///
/// The caller keeps the context in place until then.
pub(crate) fn enter(context: &Context) {
    CONTEXT.set(Some(NonNull::from(context)));
}

/// Removes the context that [`enter`] set.
pub(crate) fn leave() {
    CONTEXT.set(None);
}

/// Runs `f` with the count of live tasks of the runtime that this thread belongs to, as a worker or one of the pool.
#[cold]
pub(crate) fn with_live(f: impl Fn(&LiveTasks)) {
    if with(|context| f(&context.live)).is_none() {
        POOL_LIVE.with_borrow(|live| live.iter().for_each(|live| f(live)));
    }
}

/// Sets the count of live tasks for a thread of a blocking pool.
pub(crate) fn set_pool_live(live: Option<Arc<LiveTasks>>) {
    POOL_LIVE.set(live);
}

/// Returns the task that runs on this thread.
#[inline]
pub(crate) fn task() -> Option<RunningTask> {
    with(Context::waiting)?
}

/// Proves that the caller runs in the task.
///
/// Only code of that task has one, in a frame on the task's own stacks.
#[derive(Clone, Copy)]
pub(crate) struct RunningTask {
    task: TaskRef,
    /// Not `Send`: on another thread it would not be the running task.
    _here: PhantomData<*const ()>,
}

impl RunningTask {
    fn new(task: TaskRef) -> Self {
        RunningTask { task, _here: PhantomData }
    }

    /// Leaves the stack until the worker resumes the task.
    #[inline(always)]
    pub(crate) fn suspend(self, stop: Stop) {
        // SAFETY: the caller runs in this very task: `task` and `current::task_with` give a task to its own code alone, which
        // keeps it in its frames.
        unsafe { self.task.header().suspend(stop) };
    }
}

impl Deref for RunningTask {
    type Target = TaskRef;

    #[inline(always)]
    fn deref(&self) -> &TaskRef {
        &self.task
    }
}

/// Returns the task on this thread, whatever it does; for reports, also from a signal handler.
pub(crate) fn task_for_report() -> Option<TaskRef> {
    with(Context::running)?
}

/// Runs `f` with the task-locals of the running code.
///
/// Returns `None` on a plain thread that has dropped its own.
#[inline]
pub(crate) fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> Option<R> {
    match task_for_report() {
        Some(task) => Some(f(task.header().locals())),
        None => with_locals_off_workers(f),
    }
}

#[inline(never)]
fn with_locals_off_workers<R>(f: impl FnOnce(&Locals) -> R) -> Option<R> {
    match POOL_TASK.get() {
        Some(task) => Some(f(task.header().locals())),
        None => thread_locals().map(|locals| f(&locals)),
    }
}

/// Returns the record of this thread, and makes it if there is none.
fn thread_locals() -> Option<Rc<Locals>> {
    present_thread_locals().or_else(|| {
        END_OF_LOCALS.try_with(|_| ()).ok()?;
        let locals = Rc::<Locals>::default();
        LOCALS.set(Some(ManuallyDrop::new(Rc::clone(&locals))));
        Some(locals)
    })
}

fn present_thread_locals() -> Option<Rc<Locals>> {
    LOCALS.with_borrow(|locals| locals.as_deref().cloned())
}

/// Clones the values that a task spawned here inherits. May suspend.
pub(crate) fn inherited_locals() -> Option<InheritedLocals> {
    match task_for_report().or_else(pool_task) {
        Some(task) => task.header().present_locals()?.clone_inherited(),
        None => present_thread_locals()?.clone_inherited(),
    }
}

struct EndOfLocals;

impl Drop for EndOfLocals {
    fn drop(&mut self) {
        // Destructors of values may ask for the record until all values are gone.
        let Some(locals) = present_thread_locals() else { return };
        locals.end();
        drop(LOCALS.take().map(ManuallyDrop::into_inner));
    }
}

/// Returns the task whose closure this thread of a pool runs; for reports.
pub(crate) fn pool_task() -> Option<TaskRef> {
    POOL_TASK.get()
}

/// Sets the task whose closure this thread of a pool runs. The task outlives that.
pub(crate) fn set_pool_task(task: Option<TaskRef>) {
    POOL_TASK.set(task);
}

/// Returns the task that sleeps for the closure that this thread of a pool runs.
#[inline(never)]
pub(crate) fn sleeper() -> Option<TaskRef> {
    SLEEPER.get()
}

/// Sets the task that sleeps for the closure that this thread of a pool runs.
///
/// The task sleeps until after the setting is taken back.
pub(crate) fn set_sleeper(task: Option<TaskRef>) {
    SLEEPER.set(task);
}

/// Makes waits block this thread until dropped.
pub(crate) struct HookGuard(RunningTask);

/// Enters a panic hook of `task`: what it calls may wait, and must not switch stacks under the panic machinery.
pub(crate) fn enter_hook(task: RunningTask) -> HookGuard {
    with(|context| {
        context.in_hook.set(Some(*task));
        context.waiting.set(None);
    });
    HookGuard(task)
}

impl Drop for HookGuard {
    fn drop(&mut self) {
        with(|context| {
            context.waiting.set(Some(*self.0));
            context.in_hook.set(None);
        });
    }
}
