//! The only thread-locals of the runtime, and the only way to them.
//!
//! A migratable task may come back from a suspension on another thread, while the compiler may have kept the address
//! of a thread-local in a register over it. So the address never leaves a function that is not inlined.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Weak};

use crate::runtime::shared::Shared;
use crate::scheduler::worker::Worker;
use crate::tasks::header::TaskRef;
use crate::tasks::locals::Locals;

thread_local! {
    static WORKER: Cell<Option<NonNull<Worker>>> = const { Cell::new(None) };
    /// Set on threads of a blocking pool, which belong to a runtime but run no tasks. They do not always hold it.
    static POOL: Cell<Option<NonNull<Weak<Shared>>>> = const { Cell::new(None) };
    /// The task whose closure such a thread runs, for reports.
    static POOL_TASK: Cell<Option<TaskRef>> = const { Cell::new(None) };
    /// The task that sleeps for the closure which such a thread runs, where that is no task's own.
    static SLEEPER: Cell<Option<TaskRef>> = const { Cell::new(None) };
    /// The values of task-locals on a thread that runs no task.
    static LOCALS: Cell<Option<NonNull<Locals>>> = const { Cell::new(None) };
    /// Drops them. Apart from the above, which destructors of other thread-locals may still ask for.
    static END_OF_LOCALS: EndOfLocals = const { EndOfLocals };
}

/// The worker of this thread. The pointer is valid until the task that asked suspends: then the thread may change.
#[inline(never)]
pub(crate) fn worker() -> Option<NonNull<Worker>> {
    WORKER.get()
}

/// Runs `f` with the worker of this thread, if it is one.
///
/// `f` must not suspend: the reference would outlive a change of threads.
#[inline]
pub(crate) fn with_worker<R>(f: impl FnOnce(&Worker) -> R) -> Option<R> {
    // SAFETY: the pointer is set while the worker exists, by `enter`, on this very thread.
    worker().map(|worker| f(unsafe { worker.as_ref() }))
}

/// The same as a part of its caller, which is not inlined, and neither suspends nor calls what may before it looks for the last
/// time.
#[inline(always)]
pub(crate) fn with_worker_in_place<R>(f: impl FnOnce(&Worker) -> R) -> Option<R> {
    // SAFETY: as in `with_worker`.
    WORKER.get().map(|worker| f(unsafe { worker.as_ref() }))
}

/// The task that runs on this thread.
#[inline]
pub(crate) fn task() -> Option<TaskRef> {
    task_with(|_| ()).map(|(task, ())| task)
}

/// The task that runs on this thread, and something about its worker.
#[inline]
pub(crate) fn task_with<R>(about: impl FnOnce(&Worker) -> R) -> Option<(TaskRef, R)> {
    with_worker(|worker| Some((worker.waiting_task()?, about(worker))))?
}

/// The task that runs on this thread, whatever it is doing; for reports, also from a signal handler.
pub(crate) fn task_for_report() -> Option<TaskRef> {
    with_worker(|worker| worker.running())?
}

/// Where the values of task-locals are kept for the code that runs here. `None` on a plain thread that is past the end of
/// its own. What the pointer shows stays until the task or the thread ends.
#[inline]
pub(crate) fn locals() -> Option<NonNull<Locals>> {
    match task_for_report() {
        Some(task) => Some(NonNull::from(task.header().locals())),
        None => locals_off_workers(),
    }
}

#[inline(never)]
fn locals_off_workers() -> Option<NonNull<Locals>> {
    if let Some(task) = POOL_TASK.get() {
        return Some(NonNull::from(task.header().locals()));
    }
    LOCALS.get().or_else(|| {
        END_OF_LOCALS.try_with(|_| ()).ok()?;
        LOCALS.set(Some(NonNull::from(Box::leak(Box::default()))));
        LOCALS.get()
    })
}

/// What a task inherits that is spawned by the code that runs here. May suspend.
pub(crate) fn heritage() -> Option<Box<Locals>> {
    match task_for_report().or_else(pool_task) {
        Some(task) => task.header().present_locals()?.bequeath(),
        // SAFETY: this thread's own, and it does not end in here.
        None => unsafe { LOCALS.get()?.as_ref() }.bequeath(),
    }
}

struct EndOfLocals;

impl Drop for EndOfLocals {
    fn drop(&mut self) {
        let Some(locals) = LOCALS.get() else { return };
        // SAFETY: leaked by `locals_off_workers` on this thread; nothing but this function frees it. Destructors that run
        // in here may ask for it.
        unsafe { locals.as_ref() }.end();
        LOCALS.set(None);
        // SAFETY: as above; nobody finds it any more.
        drop(unsafe { Box::from_raw(locals.as_ptr()) });
    }
}

/// The runtime that this thread belongs to.
#[inline(never)]
pub(crate) fn runtime() -> Option<Arc<Shared>> {
    with_worker(|worker| Arc::clone(worker.shared())).or_else(|| {
        // SAFETY: set by `enter_pool` on this very thread, for as long as it is borrowed.
        POOL.get().and_then(|shared| unsafe { shared.as_ref() }.upgrade())
    })
}

/// True if this thread belongs to that runtime; also where another one runs on it, which a thread of a pool has started.
pub(crate) fn is_inside(shared: &Arc<Shared>) -> bool {
    let as_worker = with_worker(|worker| Arc::ptr_eq(worker.shared(), shared));
    as_worker == Some(true) || is_in_pool_of(shared)
}

#[inline(never)]
fn is_in_pool_of(shared: &Arc<Shared>) -> bool {
    // SAFETY: as in `runtime`.
    POOL.get().is_some_and(|pool| ptr::eq(unsafe { pool.as_ref() }.as_ptr(), Arc::as_ptr(shared)))
}

/// Makes this thread `worker`'s until the guard is dropped.
pub(crate) fn enter(worker: &Worker) -> Entered<'_> {
    WORKER.set(Some(NonNull::from(worker)));
    Entered(worker)
}

/// Makes this thread one of a blocking pool.
pub(crate) fn enter_pool(shared: &Weak<Shared>) -> InPool<'_> {
    POOL.set(Some(NonNull::from(shared)));
    InPool(shared)
}

/// Until dropped this thread is a worker.
pub(crate) struct Entered<'a>(#[expect(dead_code, reason = "keeps the worker borrowed")] &'a Worker);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        WORKER.set(None);
    }
}

/// The task whose closure this thread of a pool runs; for reports.
pub(crate) fn pool_task() -> Option<TaskRef> {
    POOL_TASK.get()
}

/// Says whose closure this thread of a pool runs. The task outlives that.
pub(crate) fn set_pool_task(task: Option<TaskRef>) {
    POOL_TASK.set(task);
}

/// The task that sleeps for the closure which this thread of a pool runs.
#[inline(never)]
pub(crate) fn sleeper() -> Option<TaskRef> {
    SLEEPER.get()
}

/// Says who sleeps for the closure that this thread of a pool runs. The task sleeps for longer than that is said.
pub(crate) fn set_sleeper(task: Option<TaskRef>) {
    SLEEPER.set(task);
}

/// Until dropped this thread belongs to a pool.
pub(crate) struct InPool<'a>(#[expect(dead_code, reason = "keeps the runtime borrowed")] &'a Weak<Shared>);

impl Drop for InPool<'_> {
    fn drop(&mut self) {
        POOL.set(None);
    }
}

/// Until dropped, waits on this thread block it.
pub(crate) struct HookGuard(bool);

/// Enters a panic hook: what it calls may wait, and must not switch stacks under the panic machinery.
pub(crate) fn enter_hook() -> HookGuard {
    HookGuard(with_worker(|worker| worker.in_hook.replace(true)).unwrap_or(false))
}

impl Drop for HookGuard {
    fn drop(&mut self) {
        with_worker(|worker| worker.in_hook.set(self.0));
    }
}
