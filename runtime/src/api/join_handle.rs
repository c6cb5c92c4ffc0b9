//! Waiting for the end of a task; the protocol is in `join_state.rs`.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::api::sleep;
use crate::scheduler::budget;
use crate::scheduler::simulated::point;
use crate::sleep::any::{Arm, Enlisted, Link};
use crate::sleep::cancel_points;
use crate::sleep::task_sleep;
use crate::tasks::context;
use crate::tasks::header::{Header, Nature, TaskRef};
use crate::tasks::join_error::JoinError;
use crate::tasks::join_state::{Detaching, Join, Joiner};
use crate::tasks::shield::shield;
use crate::tasks::task::Task;
use crate::waiter::description::{WaitDescription, WaitRecord};
use crate::waiter::kind::WakeHandle;
use crate::waiter::select_token::Claim;
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};

/// Sleeps until the end.
pub(crate) struct UntilDone<'a> {
    record: WaitRecord<&'a Join>,
    joiner: Joiner,
}

impl<'a> UntilDone<'a> {
    pub(crate) fn new(join: &'a Join) -> Self {
        UntilDone { record: WaitRecord::new(&JOIN, join), joiner: Joiner::new() }
    }
}

static JOIN: WaitDescription = WaitDescription::new("join").owner_number(Header::ID_FROM_JOIN, 0);

impl WaitStrategy for UntilDone<'_> {
    #[inline(never)]
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: only `finish` takes the wake, by unlinking the node for good; `before_awake` then answers `Served`.
        match self.record.object().publish(&self.joiner, unsafe { me.raw() }) {
            true => Asleep::Stay,
            false => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        let roused_early = why == Waking::Notified && self.joiner.is_served();
        match roused_early || self.record.object().withdraw(&self.joiner) {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }

    fn may_spin(&self) -> bool {
        true
    }

    fn record(&self) -> *const WaitRecord {
        self.record.address()
    }
}

/// Owns the right to a task's result.
///
/// Dropping the handle detaches the task: it runs on, and its result is dropped when it ends.
///
/// # As a future
/// The handle is a future of what [`join`](JoinHandle::join) returns. Every executor can poll it:
/// [`block_on`](crate::block_on), or a foreign executor on a thread of its own. Only the waker of
/// the last poll is called. A [`join_timeout`](JoinHandle::join_timeout) or a `select!` over the
/// handle forgets that waker, until the next poll. Once a poll has returned the result, a further
/// poll or join panics.
///
/// # Differences from std
/// [`join_timeout`](JoinHandle::join_timeout) exists, and joining is possible from tasks and threads alike.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let (half, other) = (fibra::spawn(|| 20), fibra::spawn(|| 22));
/// let whole = async { half.await.unwrap() + other.await.unwrap() };
/// assert_eq!(fibra::block_on(whole), 42);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct JoinHandle<T> {
    task: Task,
    result: PhantomData<T>,
}

// SAFETY: the handle moves or drops a `T` on the thread it is on, so it may go where a `T` may.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: through `&JoinHandle` no `T` is reached.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl Task {
    /// Returns true once the task has ended.
    ///
    /// A look that finds it running counts against the operation budget, so the caller may yield:
    /// a loop over it lets other tasks run.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let task = fibra::spawn(|| ()).task().clone();
    /// while !task.is_finished() {}
    /// assert!(task.is_finished());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn is_finished(&self) -> bool {
        point();
        let has_ended = self.has_ended();
        if !has_ended {
            budget::charge_after();
        }
        has_ended
    }
}

// The result lies in the task, so nothing of it is pinned with the handle.
impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// # Safety
    /// `task` was made with the result type `T`, and the caller gives it the handle's count.
    pub(crate) unsafe fn new(task: TaskRef) -> Self {
        // SAFETY: the count is the caller's to give.
        JoinHandle { task: unsafe { Task::from_count(task) }, result: PhantomData }
    }

    /// Waits for the task to end and takes its result.
    ///
    /// # Cancellation
    /// A cancellation point while the task runs; a cancelled joiner detaches it. The result of an
    /// ended task is returned in any case, not lost.
    ///
    /// # Panics
    /// Panics when a task joins itself.
    ///
    /// # Errors
    /// [`JoinError`] tells whether the task panicked, was cancelled or could not start.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let answer = fibra::spawn(|| 6 * 7);
    /// assert_eq!(answer.join().unwrap(), 42);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        match self.wait(None) {
            Ok(output) => output,
            Err(_) => unreachable!("a wait without a deadline does not run out"),
        }
    }

    /// Waits for the task to end, at most for `timeout`.
    ///
    /// # Cancellation
    /// A cancellation point while the task runs; a cancelled joiner detaches it.
    ///
    /// # Panics
    /// Panics when a task joins itself.
    ///
    /// # Errors
    /// Returns the handle when the task has not ended in time.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use std::time::Duration;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let task = fibra::spawn(fibra::task::park);
    /// let task = task.join_timeout(Duration::from_millis(1)).unwrap_err();
    /// task.task().unpark();
    /// assert!(task.join_timeout(Duration::from_secs(60)).unwrap().is_ok());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn join_timeout(self, timeout: Duration) -> Result<Result<T, JoinError>, JoinHandle<T>> {
        self.wait(sleep::deadline(timeout))
    }

    /// Returns true once the task has ended and its result is there.
    ///
    /// A look that finds it running counts against the operation budget, so the caller may yield:
    /// a loop over it lets other tasks run.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let task = fibra::spawn(|| 1);
    /// assert!(!task.is_finished());
    /// fibra::yield_now();
    /// assert!(task.is_finished());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Returns the task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Asks the task to end; see [`Task::cancel`].
    ///
    /// [`join`](JoinHandle::join) tells the outcome.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let task = fibra::spawn(fibra::task::park);
    /// task.cancel();
    /// assert!(task.join().unwrap_err().is_cancelled());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn cancel(&self) {
        self.task.cancel();
    }

    /// Forgets the waker that a poll has left. Comes before a joiner is published.
    ///
    /// # Panics
    /// Panics in the task itself, and in code that the task sleeps for.
    #[track_caller]
    fn prepare_join(&mut self) {
        self.assert_another();
        drop(self.task.header().join.withdraw_waker());
    }

    #[track_caller]
    fn assert_another(&self) {
        let own = context::task().map(|task| *task).or_else(context::pool_task).or_else(context::sleeper);
        assert!(own != Some(self.task.as_ref()), "{} joins itself", self.task);
    }

    /// Makes an arm of a select for the end of the task.
    ///
    /// # Panics
    /// Panics in the task itself, and in code that the task sleeps for.
    #[doc(hidden)]
    #[track_caller]
    pub fn arm(&mut self) -> JoinArm<'_> {
        self.prepare_join();
        let join = &self.task.header().join;
        let link = Link::new(WaitRecord::new(&JOIN, ptr::from_ref(join).cast()));
        JoinArm { join, joiner: Joiner::new(), waits: Cell::new(false), link }
    }

    #[inline(always)]
    #[track_caller]
    fn wait(mut self, deadline: Option<Instant>) -> Result<Result<T, JoinError>, JoinHandle<T>> {
        if self.is_finished() {
            budget::charge_after();
            return Ok(self.take());
        }
        self.prepare_join();
        let until = UntilDone::new(&self.task.header().join);
        match task_sleep::sleep(&until, deadline) {
            Waking::Notified => Ok(self.take()),
            Waking::TimedOut => Err(self),
            Waking::Cancelled => cancel_points::unwind_cancelled(),
        }
    }

    /// Takes the result of a task that is done.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn take(self) -> Result<T, JoinError> {
        // SAFETY: the task is done.
        let output = unsafe { self.read() };
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped or used again, so its count moves out.
        drop(unsafe { ptr::read(&this.task) });
        output
    }

    /// Moves the result out. Panics if a poll has done that.
    ///
    /// # Safety
    /// The task is done. The handle asks no more, nor drops the result.
    #[track_caller]
    unsafe fn read(&self) -> Result<T, JoinError> {
        let mut output = None;
        let task = self.task.as_ref();
        // SAFETY: the result of a task that is done is its handle's; the place has the type that the task was made with.
        unsafe { (task.header().vtable.read)(task, NonNull::from(&mut output).cast()) };
        output
            .unwrap_or_else(|| panic!("a poll of this handle has taken the result of {} already", self.task))
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    /// Panics in the task itself, and once a poll has answered.
    #[track_caller]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let join = &self.task.header().join;
        if !join.is_done() {
            self.assert_another();
            // Clones and drops of wakers are foreign code; meanwhile no waker is left.
            let waker = match join.withdraw_waker() {
                Some(mut kept) => {
                    kept.as_mut().clone_from(context.waker());
                    kept
                }
                None => Box::new(Waker::clone(context.waker())),
            };
            if join.publish_waker(waker).is_ok() {
                return Poll::Pending;
            }
        }
        // SAFETY: the task is done; that the result was taken is noted before it can be asked for again.
        let output = unsafe { self.read() };
        join.set_taken();
        Poll::Ready(output)
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let task = self.task.as_ref();
        let join = &task.header().join;
        // Dropped last: it is foreign code, which may panic.
        let _waker = join.withdraw_waker();
        // A call without a taker need not begin.
        if task.header().nature == Nature::Call {
            task.header().cancel_flags.set_cancelled();
        }
        if join.detach() == Detaching::Done {
            // No cancellation cuts the destructor of the result short.
            // SAFETY: the task is done and its result was not taken, so it is the handle's.
            shield(|| unsafe { (task.header().vtable.drop_output)(task) });
        }
    }
}

/// Waits for the end of a task as an arm of a select.
///
/// It leaves the result to the handle.
///
/// It borrows the handle alone: a task has one joiner.
#[doc(hidden)]
pub struct JoinArm<'a> {
    join: &'a Join,
    joiner: Joiner,
    /// True once the task knows the joiner.
    waits: Cell<bool>,
    link: Link,
}

impl JoinArm<'_> {
    /// Returns true once the task has ended.
    pub fn is_finished(&self) -> bool {
        self.join.is_done()
    }
}

// SAFETY: the end of the task takes the token before it uses the wake of its joiner, and lets go of the joiner before
// `withdraw_for` returns.
unsafe impl Arm for JoinArm<'_> {
    unsafe fn enlist(&self, me: WakeHandle<'_>, token: &Claim, number: usize) -> Enlisted {
        // SAFETY: only the waker that takes the token uses the wake.
        let wake = unsafe { me.raw() };
        // By the caller's contract arm and token stay until the joiner is withdrawn.
        self.waits.set(self.join.publish_for(&self.joiner, wake, token, number));
        if self.waits.get() { Enlisted::Waits } else { Enlisted::Ready }
    }

    unsafe fn withdraw(&self) {
        if self.waits.take() {
            self.join.withdraw_for(&self.joiner);
        }
    }

    fn link(&self) -> &Link {
        &self.link
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("task", &self.task)
            .field("finished", &self.task.has_ended())
            .finish()
    }
}
