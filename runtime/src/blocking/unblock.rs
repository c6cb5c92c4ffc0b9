//! The blocking pool: threads of its own for closures that block a thread.
//!
//! | file | holds |
//! | --- | --- |
//! | `pool.rs` | what is queued, and how many threads there are for it |
//! | `thread.rs` | the life of one thread |
//!
//! Grown on demand to a maximum, each thread kept for a while after its last job. Two kinds of job: a task
//! ([`spawn_blocking`](crate::spawn_blocking)), and a closure on the stack of a sleeping task ([`unblock`]).
//!
//! The end of the runtime waits for both. It does not wait for a *call* ([`spawn_call`](crate::task::spawn_call)), which may
//! never end and so owns what it uses: a call counts as ended when it begins, and its thread is left behind. A task that waits for
//! a call and must not be unwound gets its value: such calls are *sheltered*, and begin at the end of the runtime too.
//!
//! Calls are a pool of their own: their threads do not count against the maximum, and have one that is as high. Further calls wait
//! until one has ended. So a task that a call waits for finds a thread.
//!
//! Where the system has no thread, nothing stays queued behind calls alone: closures go back to
//! their tasks, which run them in place, and tasks end un-run, with the reason.
//!
//! A thread holds its runtime while it waits or works, and lets go of it for the time of a call:
//! what is left behind has the pool alone, so that stacks and hooks go when the runtime does.

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

/// The frame of one `unblock`.
struct Frame<F, T> {
    stage: UnsafeCell<Stage<F, T>>,
    wake: UnsafeCell<Option<RawWake>>,
    /// Who sleeps for it.
    task: TaskRef,
}

enum Stage<F, T> {
    Waiting(F),
    Running,
    Done(Result<T, Box<dyn Any + Send>>),
}

impl<F: FnOnce() -> T, T> Frame<F, T> {
    /// Runs the closure, stores what came of it, and wakes the sleeper.
    ///
    /// # Safety
    /// Called once, on a frame of this type that was taken from the queue. It may be gone when this returns.
    unsafe fn run(this: NonNull<()>) {
        // SAFETY: the frame is alive until its sleeper is woken, and the one who took it from the queue has its cells for
        // itself: the sleeper looks at them before it has queued the frame and after it was woken.
        let frame = unsafe { this.cast::<Self>().as_ref() };
        // SAFETY: as above.
        let Stage::Waiting(f) = (unsafe { frame.stage.get().replace(Stage::Running) }) else {
            unreachable!("a job runs once")
        };
        context::set_sleeper(Some(frame.task));
        let result = catch_unwind(AssertUnwindSafe(f));
        context::set_sleeper(None);
        // SAFETY: as above.
        unsafe { *frame.stage.get() = Stage::Done(result) };
        // SAFETY: as above.
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
        // SAFETY: not queued yet, so the cell is the sleeper's. The wake is used by who takes the job from the queue, and
        // `before_awake` answers `Served` once that has happened.
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

/// Runs `f` on the blocking pool while the calling task sleeps; returns its value.
///
/// It is for calls that block a thread: reading a file, resolving a name, a long computation.
///
/// `f` may borrow from the task's stack: the task does not go on before `f` is done. On a plain
/// thread, and when there is no thread to be had for the pool, `f` runs in place.
///
/// # Cancellation
/// A cancellation point until `f` has started; from then on it runs to its end first.
///
/// # Panics
/// With the panic of `f`. A join of the calling task in `f` panics, as it would outside.
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
    // The pool may be quick: a closure that has started is not taken back for a cancel that was there before it.
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

/// There is no thread any more for a closure or a call of this task: at the end of the runtime it
/// is cancelled, as its worker would do in a moment. Returns where it cannot be unwound.
pub fn heed_end() {
    let Some(me) = context::task() else { return };
    let is_ending = current::runtime().is_some_and(|shared| shared.is_ending());
    if is_ending && !me.header().is_sheltered() {
        me.overtake();
        cancel_points::cancellation_point();
    }
}
