//! The worker and the runtime of the thread.
//!
//! A migratable task may resume on another thread, while the compiler may have kept the address of
//! a thread-local in a register across the suspension. So the address never leaves a function that
//! is not inlined.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Weak};

use crate::base::random;
use crate::scheduler::shared::Shared;
use crate::scheduler::worker::Worker;
use crate::tasks::context::{self, RunningTask};
use crate::tasks::panic_log;
use crate::tasks::panic_log::PanicLog;

thread_local! {
    static WORKER: Cell<Option<NonNull<Worker>>> = const { Cell::new(None) };
    /// Set on threads of a blocking pool, which belong to a runtime but run no tasks. They do not always hold it.
    static POOL: Cell<Option<NonNull<Weak<Shared>>>> = const { Cell::new(None) };
}

/// Returns the worker of this thread.
///
/// The pointer is valid until the calling task suspends: then the thread may change.
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

/// Runs `f` as [`with_worker`] does, inlined into its caller.
///
/// The caller is not inlined, and neither suspends nor calls code that may, before its last use of
/// this.
#[inline(always)]
pub(crate) fn with_worker_in_place<R>(f: impl FnOnce(&Worker) -> R) -> Option<R> {
    // SAFETY: as in `with_worker`.
    WORKER.get().map(|worker| f(unsafe { worker.as_ref() }))
}

/// Returns the task that runs on this thread, and something about its worker.
#[inline]
pub(crate) fn task_with<R>(about: impl FnOnce(&Worker) -> R) -> Option<(RunningTask, R)> {
    with_worker(|worker| Some((worker.context().waiting()?, about(worker))))?
}

/// Returns a number below `bound` from the generator of the worker, or else of the thread.
#[inline(never)]
pub fn random_below(bound: usize) -> usize {
    with_worker(|worker| worker.random.below(bound)).unwrap_or_else(|| random::of_thread(bound))
}

/// Returns the runtime that this thread belongs to.
#[inline(never)]
pub(crate) fn runtime() -> Option<Arc<Shared>> {
    with_worker(|worker| Arc::clone(worker.shared())).or_else(|| {
        // SAFETY: set by `enter_pool` on this very thread, for as long as it is borrowed.
        POOL.get().and_then(|shared| unsafe { shared.as_ref() }.upgrade())
    })
}

/// Returns true if this thread belongs to that runtime, even if it runs another runtime, started on
/// a pool thread.
pub(crate) fn is_inside(shared: &Arc<Shared>) -> bool {
    let as_worker = with_worker(|worker| Arc::ptr_eq(worker.shared(), shared));
    as_worker == Some(true) || is_in_pool_of(shared)
}

#[inline(never)]
fn is_in_pool_of(shared: &Arc<Shared>) -> bool {
    // SAFETY: as in `runtime`.
    POOL.get().is_some_and(|pool| ptr::eq(unsafe { pool.as_ref() }.as_ptr(), Arc::as_ptr(shared)))
}

/// Makes `worker` the worker of this thread until the guard is dropped.
pub(crate) fn enter(worker: &Worker) -> Entered<'_> {
    WORKER.set(Some(NonNull::from(worker)));
    context::enter(worker.context());
    Entered { _worker: worker, outer: panic_log::replace(worker.shared().config.panic_log.clone()) }
}

/// Makes this thread one of a blocking pool.
pub(crate) fn enter_pool(shared: &Weak<Shared>) -> InPool<'_> {
    POOL.set(Some(NonNull::from(shared)));
    let present = shared.upgrade();
    panic_log::replace(present.as_ref().and_then(|shared| shared.config.panic_log.clone()));
    context::set_pool_live(present.map(|shared| Arc::clone(&shared.live)));
    InPool(shared)
}

/// Makes this thread a worker until dropped.
pub(crate) struct Entered<'a> {
    /// Kept borrowed.
    _worker: &'a Worker,
    /// The log of the runtime that the thread belongs to besides, if it is one of a pool.
    outer: Option<PanicLog>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        panic_log::replace(self.outer.take());
        context::leave();
        WORKER.set(None);
    }
}

/// Makes this thread belong to a pool until dropped.
pub(crate) struct InPool<'a>(#[expect(dead_code, reason = "keeps the runtime borrowed")] &'a Weak<Shared>);

impl Drop for InPool<'_> {
    fn drop(&mut self) {
        POOL.set(None);
    }
}
