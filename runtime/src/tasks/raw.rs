//! The one allocation of a task: header, then closure, later result.
//!
//! ```text
//!  Cell<F, T, K> ┬ Header  … everything that does not depend on F, T and K (see `header.rs`)
//!                ├ Stage   Closure(F) ─run─▶ Empty ─▶ Output(Result<T, JoinError>) ─read─▶ Empty
//!                └ K       the task hooks, called at its making and at its end; `()` for most
//! ```
//!
//! The stage belongs to the runner of the task until the task is done. From then on it belongs to
//! the join handle, or to the runner if the handle was dropped.
//!
//! The last counted reference frees the allocation and never finds a user's value in it: user
//! destructors run in tasks and in the thread that drops a handle.

use std::alloc::Layout;
use std::cell::{RefCell, UnsafeCell};
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::task::Waker;

use crate::base::payload::drop_quietly;
use crate::base::payload::quietly;
use crate::tasks::bounds::Bound;
use crate::tasks::cancel;
use crate::tasks::context;
use crate::tasks::header::{Container, Header, Nature, Origin, TaskRef, VTable};
use crate::tasks::join_error::JoinError;
use crate::tasks::join_state::JoinState;
use crate::tasks::live_tasks::LiveTasks;
use crate::tasks::locals::Locals;
use crate::tasks::shield::shield;
use crate::tasks::slab_cache;
use crate::tasks::slab_cache::SlabCache;
use crate::tasks::switch_hook::Switch;

#[repr(C)]
struct Cell<F, T, K> {
    header: Header,
    stage: UnsafeCell<Stage<F, T>>,
    hooks: K,
}

/// Receives the events of a task, for the party it belongs to beyond its handle.
///
/// The value lies in the task and does not move.
pub(crate) trait TaskHooks {
    /// True if the owner waits for the end of the task even if no handle exists.
    const AWAITS: bool;

    /// The set of tasks that the task belongs to. The offsets are in bytes from the hooks.
    const CONTAINER: Option<Container> = None;

    /// Runs when the task was made, before it is published.
    fn made(&self, task: TaskRef);

    /// Runs when the task ended with an error that no caller asks for.
    ///
    /// Comes before `ended`, or from the handle that is dropped.
    fn unclaimed(&self, error: &mut JoinError) {
        error.unobserved();
    }

    /// Runs when the task has ended, and its closure and any unclaimed result are dropped.
    ///
    /// The runner's last action for the task.
    fn ended(&self);
}

impl TaskHooks for () {
    const AWAITS: bool = false;

    #[inline(always)]
    fn made(&self, _task: TaskRef) {}

    #[inline(always)]
    fn ended(&self) {}
}

enum Stage<F, T> {
    Closure(F),
    Output(Result<T, JoinError>),
    Empty,
}

/// Makes a task that has not run. The caller gets two counts: the runtime's and the handle's.
#[inline]
pub(crate) fn new<F, T, K>(slabs: Option<&RefCell<SlabCache>>, f: F, hooks: K, origin: Origin) -> TaskRef
where
    F: FnOnce() -> T,
    K: TaskHooks,
{
    let vtable = const {
        &VTable {
            run: run::<F, T, K>,
            discard: discard::<F, T, K>,
            read: read::<F, T, K>,
            drop_output: drop_output::<F, T, K>,
            free: free::<F, T, K>,
            is_awaited: K::AWAITS,
            container: match K::CONTAINER {
                Some(container) => Some(container.shifted(offset_of!(Cell<F, T, K>, hooks))),
                None => None,
            },
        }
    };
    let cell = slab_cache::take(slabs, Layout::new::<Cell<F, T, K>>()).cast::<Cell<F, T, K>>();
    // SAFETY: fresh memory of this layout, not shared yet. Written field by field, where it stays.
    unsafe {
        (&raw mut (*cell.as_ptr()).header).write(Header::new(vtable, origin));
        (&raw mut (*cell.as_ptr()).stage).write(UnsafeCell::new(Stage::Closure(f)));
        (&raw mut (*cell.as_ptr()).hooks).write(hooks);
    }
    let task = TaskRef::new(cell.cast());
    // SAFETY: written just now.
    unsafe { hooks_of::<F, T, K>(task) }.made(task);
    task
}

/// # Safety
/// `task` was made by `new::<F, T, K>`, is alive, and the caller is the owner of the stage (see the module's head).
unsafe fn stage<F, T, K>(task: TaskRef) -> *mut Stage<F, T> {
    // SAFETY: by the contract the pointer is to a live `Cell<F, T, K>`.
    unsafe { (*task.as_ptr().cast::<Cell<F, T, K>>()).stage.get() }
}

/// # Safety
/// `task` was made by `new::<F, T, K>`, and is alive for as long as the reference is used.
unsafe fn hooks_of<'a, F, T, K: 'a>(task: TaskRef) -> &'a K {
    // SAFETY: by the contract the pointer is to a live `Cell<F, T, K>`.
    unsafe { &(*task.as_ptr().cast::<Cell<F, T, K>>()).hooks }
}

unsafe fn run<F: FnOnce() -> T, T, K: TaskHooks>(task: TaskRef) {
    // SAFETY: the vtable's contract is this function's; the runner of a task owns its stage.
    let taken = unsafe { stage::<F, T, K>(task).replace(Stage::Empty) };
    let Stage::Closure(f) = taken else { unreachable!("a task runs once") };
    task.header().switches(Switch::In);
    let output = catch_unwind(AssertUnwindSafe(f)).map_err(|payload| cancel::judge(task, payload));
    // SAFETY: as above.
    unsafe { complete::<F, T, K>(task, output) };
}

unsafe fn discard<F: FnOnce() -> T, T, K: TaskHooks>(task: TaskRef, error: JoinError) {
    // SAFETY: as in `run`.
    let taken = unsafe { stage::<F, T, K>(task).replace(Stage::Empty) };
    match task.header().is_started() {
        true => task.header().switches(Switch::In),
        // The running code is not the task's, so its hook is not called.
        false => drop_hook(task),
    }
    let error = match shielded(task, || catch_unwind(AssertUnwindSafe(|| drop(taken)))) {
        Ok(()) => error,
        Err(payload) => cancel::judge(task, payload),
    };
    // SAFETY: as in `run`.
    unsafe { complete::<F, T, K>(task, Err(error)) };
}

/// Stores the result, or drops it if it is unclaimed, and wakes the joiner.
unsafe fn complete<F, T, K: TaskHooks>(task: TaskRef, output: Result<T, JoinError>) {
    let header = task.header();
    let join = &header.join;
    // SAFETY: the task is alive until its runner gives up the runtime's count, after this.
    let hooks = unsafe { hooks_of::<F, T, K>(task) };
    end_locals(task);
    if join.is_detached() {
        count_failure(&output);
        shielded(task, || drop_unclaimed(hooks, output));
        end_locals(task);
        leave(task);
        count_out(header);
        let JoinState::Detached = join.finish() else { unreachable!("a dropped handle does not come back") };
        drop_hook(task);
        return hooks.ended();
    }
    leave(task);
    count_failure(&output);
    // SAFETY: the task is not done, so its runner owns the stage.
    unsafe { *stage::<F, T, K>(task) = Stage::Output(output) };
    count_out(header);
    match join.finish() {
        JoinState::Unjoined => {}
        JoinState::Waiting(wake) => wake.wake(),
        JoinState::Polled(waker) => call_as(task, *waker),
        // The handle was dropped between `is_detached` and `finish`, and left the result to the
        // runner.
        JoinState::Detached => {
            header.switches(Switch::In);
            // SAFETY: so the stage is ours.
            shielded(task, || unsafe { drop_output::<F, T, K>(task) });
            end_locals(task);
            leave(task);
        }
    }
    drop_hook(task);
    hooks.ended();
}

/// Counts a task that ends without a value. Comes before its end is published, so a joiner sees the count.
#[inline(always)]
fn count_failure<T>(output: &Result<T, JoinError>) {
    match output {
        Err(error) if error.is_cancelled() => context::with_live(LiveTasks::note_cancelled),
        Err(error) if error.is_panic() => context::with_live(LiveTasks::note_panicked),
        _ => {}
    }
}

/// Counts a task out of the live ones.
///
/// Comes before its end is published: a joiner may spawn the next task then. Tasks of the blocking
/// pool were never counted. The caller that a runtime has refused counts out its refused task.
#[inline(always)]
fn count_out(header: &Header) {
    if header.is_started() {
        context::with(|context| context.live.ended(header.nature));
    }
}

/// Calls the waker of a future that waits for the end of `task`: user code, which runs as a part of
/// the task.
#[cold]
fn call_as(task: TaskRef, waker: Waker) {
    task.header().switches(Switch::In);
    shielded(task, || quietly(|| waker.wake()));
    end_locals(task);
    leave(task);
}

/// Reports the last switch out of the task, as far as is known.
///
/// Drops the task-locals that the hook has set there at once, so that none is left to the drop of
/// the last handle.
#[inline(always)]
fn leave(task: TaskRef) {
    task.header().switches(Switch::Out);
    if task.header().is_hooked() {
        end_locals(task);
    }
}

/// Drops the switch hook after its last call.
#[inline(always)]
fn drop_hook(task: TaskRef) {
    if task.header().is_hooked() {
        drop_present_hook(task);
    }
}

#[cold]
fn drop_present_hook(task: TaskRef) {
    let hook = task.header().unhook();
    shielded(task, || drop_quietly(hook));
    // Its destructor may have set task-locals.
    end_locals(task);
}

/// Drops the values of task-locals.
///
/// That includes values that the destructor of an unclaimed result has set. Such a destructor finds
/// none of the earlier values.
#[inline]
pub(crate) fn end_locals(task: TaskRef) {
    if let Some(locals) = task.header().present_locals() {
        end_present(task, locals);
    }
}

#[cold]
fn end_present(task: TaskRef, locals: &Locals) {
    shielded(task, || locals.end());
}

unsafe fn read<F, T, K>(task: TaskRef, into: NonNull<()>) {
    // SAFETY: the handle of a done task owns the stage.
    let taken = unsafe { stage::<F, T, K>(task).replace(Stage::Empty) };
    let Stage::Output(output) = taken else { return };
    // SAFETY: the caller gave a place of this type.
    unsafe { *into.cast::<Option<Result<T, JoinError>>>().as_mut() = Some(output) };
}

unsafe fn drop_output<F, T, K: TaskHooks>(task: TaskRef) {
    // SAFETY: the caller owns the stage.
    let taken = unsafe { stage::<F, T, K>(task).replace(Stage::Empty) };
    let Stage::Output(output) = taken else { unreachable!("a result is dropped once, of a done task") };
    // SAFETY: the caller has the task.
    drop_unclaimed(unsafe { hooks_of::<F, T, K>(task) }, output);
}

/// Drops an unclaimed result.
fn drop_unclaimed<T>(hooks: &impl TaskHooks, mut output: Result<T, JoinError>) {
    if let Err(error) = &mut output {
        hooks.unclaimed(error);
    }
    drop_quietly(output);
}

unsafe fn free<F, T, K>(task: TaskRef) {
    let cell = task.as_ptr().cast::<Cell<F, T, K>>();
    // SAFETY: the last reference is gone; the memory came from `take` with this layout.
    unsafe {
        cell.drop_in_place();
        let (block, layout) = (NonNull::new_unchecked(cell.cast()), Layout::new::<Cell<F, T, K>>());
        if context::with(|context| slab_cache::give(Some(&context.slabs), block, layout)).is_none() {
            slab_cache::give(None, block, layout);
        }
    }
}

/// Runs destructors at the end of the current task, `task`, shielded from its cancellation.
///
/// So the cancellation does not cut them short, as it does not during an unwinding. `f` does not
/// unwind.
fn shielded<R>(task: TaskRef, f: impl FnOnce() -> R) -> R {
    Bound::shield_at_end().run(task.header(), f).expect("nothing is raised for a shield")
}

/// Claims a forked task that no worker has begun, drops its closure here, and ends it with `error`.
///
/// Returns false if it was claimed before. The task stays queued until its worker drops it.
pub(crate) fn take_back(task: TaskRef, error: impl FnOnce() -> JoinError) -> bool {
    let header = task.header();
    if header.nature != Nature::Forked || !header.cancel_flags.begin() {
        return false;
    }
    let error = error();
    // SAFETY: this caller is the first to claim the task, so it owns the stage.
    shield(|| unsafe { (header.vtable.discard)(task, error) });
    true
}

/// Ends a task that is in no queue, and drops its closure in the caller, shielded.
///
/// So a cancel of the caller does not cut the task's destructors short.
///
/// # Safety
/// The stage and the runtime's count are the caller's.
pub(crate) unsafe fn discard_here(task: TaskRef, error: JoinError) {
    // SAFETY: by this function's contract.
    shield(|| unsafe {
        (task.header().vtable.discard)(task, error);
        task.release();
    });
}
