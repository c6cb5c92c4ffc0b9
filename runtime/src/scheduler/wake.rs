//! Wakes and cancels of tasks, on their own worker and from elsewhere.

use std::hint::cold_path;
use std::ptr::{self, NonNull};
use std::task::Waker;

use crate::scheduler::block::Block;
use crate::scheduler::current;
use crate::scheduler::home_worker::check_at_home;
use crate::scheduler::simulated::point;
use crate::scheduler::worker::Worker;
use crate::tasks::header::TaskRef;
use crate::tasks::task::Task;
use crate::waiter::kind::{Kind, RawWake, Waiter, call_waker};
use crate::waiter::word::Woke;

/// The kind of waiter that tasks are.
pub(crate) static TASK: Kind = Kind { notify: notify_waiter, queue };

impl TaskRef {
    /// Notifies the present sleep of the task, which the caller has unlinked.
    pub(crate) fn notify(self) {
        notify(self);
    }

    /// Ends the task's sleep for a token that was fired, if a token may end it.
    pub(crate) fn fire(self) {
        self.header().cancel_flags.set_fired();
        self.rouse();
    }

    /// Marks the task as cancelled and ends its sleep, if it is in one that a cancel may end.
    pub(crate) fn cancel(self) {
        self.header().cancel_flags.set_cancelled();
        self.rouse();
    }

    /// Marks the task as cancelled by the end of its runtime, and ends its sleep if a cancel may.
    pub(crate) fn cancel_for_shutdown(self) {
        self.header().cancel_flags.set_cancelled_for_shutdown();
        self.rouse();
    }

    fn rouse(self) {
        match self.header().waiter.word.cancel() {
            Woke::Queue => wake(self),
            Woke::AtHome => check_at_home(self),
            Woke::Left => {}
        }
    }
}

impl Task {
    /// Cancels the task: its next cancellation point unwinds it.
    ///
    /// A task that has not run never enters its body.
    ///
    /// Destructors run as in a panic, but no message is printed. The [module's
    /// docs](crate::task#cancellation) list the cancellation points, and say what happens to code
    /// that catches the unwinding.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let task = fibra::spawn(|| fibra::sleep(std::time::Duration::from_secs(60)));
    /// fibra::yield_now();
    /// task.task().cancel();
    /// assert!(task.join().unwrap_err().is_cancelled());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn cancel(&self) {
        point();
        self.as_ref().cancel();
    }
}

/// Queues a sleeping task that the caller was told to queue.
#[inline(always)]
pub(crate) fn wake(task: TaskRef) {
    if current::with_worker(|worker| worker.wake(task)).is_none() {
        cold_path();
        Block::deliver(task.header().home(), task);
    }
}

/// Notifies the present sleep of a task that the caller has unlinked.
#[inline(always)]
pub(crate) fn notify(task: TaskRef) {
    if current::with_worker(|worker| worker.notify(task)).is_none() {
        cold_path();
        if task.header().waiter.word.notify() == Woke::Queue {
            Block::deliver(task.header().home(), task);
        }
    }
}

impl Worker {
    /// Wakes a batch on this worker's thread.
    ///
    /// Calls the wakers of futures once every wake has landed.
    #[inline]
    pub(crate) fn wake_batch(&self, wakes: impl IntoIterator<Item = RawWake>) {
        let mut wakers = Vec::new();
        for wake in wakes {
            match task_of(&wake) {
                Some(task) => self.notify(task),
                None => {
                    cold_path();
                    wakers.extend(wake.land());
                }
            }
        }
        wakers.into_iter().for_each(call_waker);
    }
}

/// Returns the task that a wake is for, if it is for one.
#[inline]
fn task_of(wake: &RawWake) -> Option<TaskRef> {
    ptr::eq(wake.kind(), &TASK).then(|| TaskRef::new(wake.waiter().cast()))
}

unsafe fn notify_waiter(waiter: NonNull<Waiter>) -> Option<Waker> {
    // A waiter of this kind is the first field of a header. The caller has unlinked the wake, so the task is alive.
    notify(TaskRef::new(waiter.cast()));
    None
}

unsafe fn queue(waiter: NonNull<Waiter>) -> Option<Waker> {
    // SAFETY: a waiter of this kind is the first field of a header. It was asleep and this wake
    // claimed it, so it stays in place until it is queued.
    wake(TaskRef::new(waiter.cast()));
    None
}
