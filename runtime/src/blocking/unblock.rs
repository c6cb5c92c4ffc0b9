//! The blocking pool: threads for closures that block.
//!
//! | file | holds |
//! | --- | --- |
//! | `pool.rs` | the queues and the threads |
//! | `job.rs` | a task or a closure in a queue |
//!
//! The pool grows on demand to a maximum, and keeps each thread for a while after its last job. A
//! job is a task ([`spawn_blocking`](crate::spawn_blocking)), or a closure on the stack of a
//! sleeping task ([`unblock`]).
//!
//! The end of the runtime waits for both. It does not wait for a *call*
//! ([`spawn_call`](crate::task::spawn_call)), which may never end and so owns what it uses. A call
//! counts as ended when it begins, and the runtime leaves its thread behind. A task that waits for
//! a call and must not be unwound gets its value. Such calls are *sheltered*, and begin at the end
//! of the runtime too.
//!
//! Calls have threads of their own, limited to as many. Further calls wait until a call has ended.
//! So a task that a call waits for finds a thread.
//!
//! Where the system has no thread, no job is queued behind calls: a closure runs in its task, and
//! a task or call ends un-run, with the reason.
//!
//! A thread holds its runtime while it waits or works, and releases it for the time of a call. A
//! thread that is left behind holds the pool alone, so stacks and hooks go with the runtime.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::blocking::job::{Borrowed, Job, Queued};
use crate::blocking::pool::{Pool, Ticket};
use crate::scheduler::current;
use crate::scheduler::shared::Shared;
use crate::sleep::cancel_points;
use crate::sleep::task_sleep;
use crate::tasks::context;
use crate::tasks::header::{Nature, TaskRef};
use crate::tasks::hook_maker;
use crate::tasks::join_error::JoinError;
use crate::tasks::switch_hook::Hook;
use crate::waiter::description::{ON_POOL, WaitRecord};
use crate::waiter::kind::{RawWake, WakeHandle};
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};

impl Shared {
    /// Queues a blocking task, or ends it with the reason why there is no thread for it.
    ///
    /// # Safety
    /// The task is new, and the caller gives the runtime's count.
    pub(crate) unsafe fn spawn_on_pool(self: &Arc<Self>, task: TaskRef) {
        // SAFETY: the caller's contract.
        let queued = unsafe { Queued::new(task, self) };
        if self.admit_from_outside(task).is_err() {
            return queued.end(JoinError::cancelled);
        }
        let is_call = task.header().nature == Nature::Call;
        let job = if is_call { Job::Call(queued) } else { Job::Task(queued) };
        if let Err((Job::Task(queued) | Job::Call(queued), lacking)) = Pool::of(self).submit(self, job) {
            self.outside_ended();
            queued.end(|task| match lacking {
                Some(refusal) => JoinError::not_started(task, refusal.into()),
                None => JoinError::cancelled(task),
            });
        }
    }
}

/// Stack frame of one `unblock`.
///
/// The sleeper uses the cells before it queues the frame and after its wake; in between they belong
/// to the thread that takes the frame from the queue.
struct Frame<F, T> {
    stage: Cell<Stage<F, T>>,
    wake: Cell<Option<RawWake>>,
    /// The hook of the runtime around the closure.
    hook: Cell<Option<Hook>>,
    /// The sleeping task.
    task: TaskRef,
}

enum Stage<F, T> {
    Waiting(F),
    Running,
    Done(Result<T, Box<dyn Any + Send>>),
}

impl<F: FnOnce() -> T, T> Frame<F, T> {
    /// Runs the closure, stores its outcome, and wakes the sleeper.
    ///
    /// # Safety
    /// Called once, on a frame of this type that was taken from the queue. It may be gone when this returns.
    unsafe fn run(this: NonNull<()>) {
        // SAFETY: the frame is alive until its sleeper is woken, which is the last that happens here.
        let frame = unsafe { this.cast::<Self>().as_ref() };
        let Stage::Waiting(f) = frame.stage.replace(Stage::Running) else { unreachable!("a job runs once") };
        context::set_sleeper(Some(frame.task));
        let result = hook_maker::between(frame.hook.take(), || catch_unwind(AssertUnwindSafe(f)));
        context::set_sleeper(None);
        frame.stage.set(Stage::Done(result));
        frame.wake.take().expect("queued with its wake").wake();
    }
}

struct OnPool<'a, F, T> {
    shared: &'a Arc<Shared>,
    frame: &'a Frame<F, T>,
    ticket: Cell<Ticket>,
}

impl<F: FnOnce() -> T, T> WaitStrategy for OnPool<'_, F, T> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: the thread that takes the job from the queue uses the wake, and `before_awake`
        // returns `Served` once that has happened.
        self.frame.wake.set(Some(unsafe { me.raw() }));
        let place = NonNull::from(self.frame).cast();
        // SAFETY: the frame stays until its wake lands, which is the last that `run` does.
        let job = Job::Borrowed(unsafe { Borrowed::new(place, Frame::<F, T>::run) });
        match Pool::of(self.shared).submit(self.shared, job) {
            Ok(ticket) => {
                self.ticket.set(ticket);
                Asleep::Stay
            }
            Err(_) => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        match Pool::of(self.shared).withdraw(self.ticket.get()) {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }

    fn record(&self) -> *const WaitRecord {
        ON_POOL.address()
    }
}

/// Runs `f` on the blocking pool while the caller sleeps, and returns its value.
///
/// It is for calls that block a thread: reading a file, resolving a name, a long computation.
///
/// `f` may borrow from the task's stack: the task does not go on before `f` is done. On a plain
/// thread, and when the pool can get no thread, `f` runs in place.
///
/// # Cancellation
/// A cancellation point until `f` has started; from then on it runs to its end first.
///
/// # Panics
/// Resumes a panic of `f`. A join of the calling task in `f` panics, as it would outside.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let mut text = String::new();
/// fibra::unblock(|| text.push_str("written on another thread"));
/// assert_eq!(text, "written on another thread");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn unblock<F, T>(f: F) -> T
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let Some(task) = context::task() else { return f() };
    // Before the job is queued: the pool may start it at once, and a started closure is not
    // withdrawn for an earlier cancel.
    cancel_points::cancellation_point();
    let Some(shared) = current::runtime().filter(|shared| !shared.is_simulated()) else { return f() };
    let hook = shared.config.on_switch.as_ref().map(|maker| maker.make(None, true));
    let frame = Frame {
        stage: Cell::new(Stage::Waiting(f)),
        wake: Cell::new(None),
        hook: Cell::new(hook),
        task: *task,
    };
    let on_pool = OnPool { shared: &shared, frame: &frame, ticket: Cell::new(0) };
    if task_sleep::sleep(&on_pool, None) == Waking::Cancelled {
        cancel_points::unwind_cancelled()
    }
    match frame.stage.into_inner() {
        Stage::Done(Ok(value)) => value,
        Stage::Done(Err(payload)) => resume_unwind(payload),
        Stage::Waiting(f) => {
            end_with_runtime();
            f()
        }
        Stage::Running => unreachable!("woken by the end of the closure"),
    }
}

/// Cancels and unwinds a task that the pool had no thread for, if the runtime ends.
///
/// Its worker would cancel it in a moment. Returns where the task cannot be unwound.
pub fn end_with_runtime() {
    let Some(me) = context::task() else { return };
    let is_ending = current::runtime().is_some_and(|shared| shared.is_ending());
    if is_ending && !me.header().is_sheltered() {
        me.cancel_for_shutdown();
        cancel_points::cancellation_point();
    }
}
