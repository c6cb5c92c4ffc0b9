//! The blocking pool: threads for closures that block.
//!
//! | file | holds |
//! | --- | --- |
//! | `pool.rs` | the queue, and the number of threads |
//! | `thread.rs` | the life of one thread |
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
//! Calls have a second pool: their threads do not count against the maximum of the first, and are
//! limited to as many. Further calls wait until a call has ended. So a task that a call waits for
//! finds a thread.
//!
//! Where the system has no thread, no job stays queued while all threads are in calls. Closures go
//! back to their tasks, which run them in place; tasks end un-run, with the reason.
//!
//! A thread holds its runtime while it waits or works, and releases it for the time of a call. A
//! thread that is left behind holds the pool alone, so stacks and hooks go with the runtime.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::blocking::pool::Pool;
use crate::blocking::pool::{Borrowed, Job, Ticket};
use crate::scheduler::current;
use crate::scheduler::shared::Shared;
use crate::sleep::cancel_points;
use crate::sleep::task_sleep;
use crate::tasks::context;
use crate::tasks::header::TaskRef;
use crate::tasks::join_error::JoinError;
use crate::tasks::raw::discard_here;
use crate::tasks::task::Task;
use crate::waiter::kind::{RawWake, WakeHandle};
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};

impl Shared {
    /// Queues a blocking task, or ends it with the reason why there is no thread for it.
    ///
    /// # Safety
    /// The task is new, and the caller gives the runtime's count.
    pub(crate) unsafe fn spawn_on_pool(self: &Arc<Self>, task: TaskRef) {
        let handle = Task::counted(task);
        let error = match self.admit_from_outside(task) {
            Err(_) => JoinError::cancelled(&handle),
            Ok(()) => match Pool::of(self).submit(self, Job::Task(task)) {
                Ok(_) => return,
                Err(lacking) => {
                    self.outside_ended();
                    match lacking {
                        Some(refusal) => JoinError::not_started(&handle, refusal.into()),
                        None => JoinError::cancelled(&handle),
                    }
                }
            },
        };
        // SAFETY: never queued, so the stage and the runtime's count are this caller's.
        unsafe { discard_here(task, error) };
    }
}

/// Stack frame of one `unblock`.
struct Frame<F, T> {
    stage: UnsafeCell<Stage<F, T>>,
    wake: UnsafeCell<Option<RawWake>>,
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
        // SAFETY: the frame is alive until its sleeper is woken. The thread that took it from the
        // queue has its cells for itself: the sleeper looks at them only before it queues the frame
        // and after its wake.
        let frame = unsafe { this.cast::<Self>().as_ref() };
        // SAFETY: until the wake the cells are this thread's, see above.
        let Stage::Waiting(f) = (unsafe { frame.stage.get().replace(Stage::Running) }) else {
            unreachable!("a job runs once")
        };
        context::set_sleeper(Some(frame.task));
        let result = catch_unwind(AssertUnwindSafe(f));
        context::set_sleeper(None);
        // SAFETY: until the wake the cells are this thread's, see above.
        unsafe { *frame.stage.get() = Stage::Done(result) };
        // SAFETY: the caller's contract; `give_back` is called here and not again.
        unsafe { Self::give_back(this) };
    }

    /// Wakes the sleeper, which finds the closure un-run unless it has run.
    ///
    /// # Safety
    /// As for [`run`](Frame::run): one of the two is called, once.
    unsafe fn give_back(this: NonNull<()>) {
        // SAFETY: as in `run`.
        let wake = unsafe { (*this.cast::<Self>().as_ref().wake.get()).take() };
        wake.expect("queued with its wake").wake();
    }
}

struct OnPool<'a, F, T> {
    shared: &'a Arc<Shared>,
    frame: &'a Frame<F, T>,
    ticket: Cell<Ticket>,
}

impl<F: FnOnce() -> T, T> OnPool<'_, F, T> {
    fn place(&self) -> NonNull<()> {
        NonNull::from(self.frame).cast()
    }

    fn job(&self) -> Job {
        // SAFETY: the frame stays until its wake lands, which is the last that both functions do.
        Job::Borrowed(unsafe { Borrowed::new(self.place(), Frame::<F, T>::run, Frame::<F, T>::give_back) })
    }
}

impl<F: FnOnce() -> T, T> WaitStrategy for OnPool<'_, F, T> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: not queued yet, so the cell is the sleeper's. The thread that takes the job from
        // the queue uses the wake, and `before_awake` returns `Served` once that has happened.
        unsafe { *self.frame.wake.get() = Some(me.raw()) };
        match Pool::of(self.shared).submit(self.shared, self.job()) {
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
}

/// Runs `f` on the blocking pool while the calling task sleeps, and returns its value.
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
    let Some(shared) = current::runtime() else { return f() };
    let frame = Frame { stage: UnsafeCell::new(Stage::Waiting(f)), wake: UnsafeCell::new(None), task: *task };
    let on_pool = OnPool { shared: &shared, frame: &frame, ticket: Cell::new(0) };
    if task_sleep::sleep(&on_pool, None) == Waking::Cancelled {
        cancel_points::unwind_cancelled()
    }
    match frame.stage.into_inner() {
        Stage::Done(Ok(value)) => value,
        Stage::Done(Err(payload)) => resume_unwind(payload),
        Stage::Waiting(f) => {
            heed_end();
            f()
        }
        Stage::Running => unreachable!("woken by the end of the closure"),
    }
}

/// Cancels and unwinds the current task if the runtime ends, where the pool had no thread for it.
///
/// Its worker would cancel it in a moment. Returns where the task cannot be unwound.
pub fn heed_end() {
    let Some(me) = context::task() else { return };
    let is_ending = current::runtime().is_some_and(|shared| shared.is_ending());
    if is_ending && !me.header().is_sheltered() {
        me.overtake();
        cancel_points::cancellation_point();
    }
}
