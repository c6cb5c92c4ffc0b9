//! Tokens: cancellation of blocks of code, in any number of tasks, by any holder of the token.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::io;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use slab::Slab;

use crate::api::sleep;
use crate::base::primitive::{AtomicBool, Mutex, MutexGuard, Ordering};
use crate::scheduler::budget::charge;
use crate::scheduler::simulated::point;
use crate::sleep::cancel_points;
use crate::sleep::queue::WaitQueue;
use crate::sleep::queue::arm::{ArmRules, QueueArm};
use crate::sleep::queue::wait::Until;
use crate::tasks::bounds::Bound;
use crate::tasks::context;
use crate::tasks::task::Task;
use crate::waiter::description::WaitDescription;

static CANCEL_TOKEN: WaitDescription = WaitDescription::new("cancel token");

/// Signals many tasks and threads to stop.
///
/// [`scope`](CancelToken::scope) runs code that the token ends,
/// [`cancelled`](CancelToken::cancelled) waits for the cancel, and
/// [`is_cancelled`](CancelToken::is_cancelled) polls it. Tokens form trees: a cancelled token
/// cancels its [children](CancelToken::child_token), but no child cancels its parent. A cancelled
/// token stays cancelled.
///
/// Clones share one token. Dropping all of them cancels nothing; see
/// [`drop_guard`](CancelToken::drop_guard).
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use std::time::Duration;
/// use fibra::CancelToken;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let stop = CancelToken::new();
/// let heeds = stop.child_token();
/// let service = fibra::spawn(move || heeds.scope(|| fibra::sleep(Duration::from_secs(60))));
/// stop.cancel();
/// assert!(service.join().unwrap().is_err(), "the scope was ended, the task was not");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct CancelToken(Arc<Inner>);

struct Inner {
    /// Set once, under the lock of `state`. The bounds of the scopes share it.
    cancelled: Arc<AtomicBool>,
    state: Mutex<State>,
    /// Waiters, with a flag that the cancel has served them.
    queue: WaitQueue<bool, ()>,
    /// With the place in its list.
    parent: Option<(Arc<Inner>, usize)>,
}

/// The waiters and tasks to wake.
struct State {
    children: Slab<Weak<Inner>>,
    /// The tasks in the scopes that run. A scope takes its entry out before it ends.
    scopes: Slab<Task>,
}

/// Reports that a token ended a [`CancelToken::scope`].
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let token = fibra::CancelToken::new();
/// token.cancel();
/// let ended = token.scope(fibra::yield_now).unwrap_err();
/// assert_eq!(ended.to_string(), "the token of the scope was cancelled");
/// assert_eq!(std::io::Error::from(ended).kind(), std::io::ErrorKind::Other);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cancelled(());

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the token of the scope was cancelled")
    }
}

impl Error for Cancelled {}

impl From<Cancelled> for io::Error {
    /// Not `Interrupted`, after which callers try again.
    fn from(cancelled: Cancelled) -> Self {
        io::Error::other(cancelled)
    }
}

impl CancelToken {
    /// Makes a token that has no parent.
    pub fn new() -> Self {
        Self::with(false, None)
    }

    fn with(cancelled: bool, parent: Option<(Arc<Inner>, usize)>) -> Self {
        CancelToken(Arc::new(Inner {
            cancelled: Arc::new(AtomicBool::new(cancelled)),
            state: Mutex::new(State { children: Slab::new(), scopes: Slab::new() }),
            queue: WaitQueue::new(cancelled),
            parent,
        }))
    }

    /// Makes a token that is cancelled with this one, and can be cancelled alone.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let parent = fibra::CancelToken::new();
    /// let (first, second) = (parent.child_token(), parent.child_token());
    /// first.cancel();
    /// assert!(first.is_cancelled() && !parent.is_cancelled() && !second.is_cancelled());
    /// parent.cancel();
    /// assert!(second.is_cancelled());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn child_token(&self) -> CancelToken {
        point();
        let mut state = self.0.lock();
        if self.0.is_cancelled() {
            return Self::with(true, None);
        }
        let place = state.children.vacant_key();
        let child = Self::with(false, Some((Arc::clone(&self.0), place)));
        state.children.insert(Arc::downgrade(&child.0));
        child
    }

    /// Returns true once the token or an ancestor was cancelled.
    ///
    /// It is true at the latest when the [`cancel`](CancelToken::cancel) has returned. While a
    /// `cancel` is under way on another thread, it may have reached only some of the descendants.
    ///
    /// A point at which a task may yield, so that a loop over it lets other tasks run.
    pub fn is_cancelled(&self) -> bool {
        charge();
        self.0.is_cancelled()
    }

    /// Cancels the token and its descendants: ends their scopes and wakes all waiters.
    ///
    /// When it returns all of them are cancelled, even if an earlier call is still under way.
    pub fn cancel(&self) {
        point();
        let mut below = self.0.fire();
        let mut fired = 0;
        while fired < below.len() {
            let mut children = below[fired].fire();
            below.append(&mut children);
            fired += 1;
        }
        if !below.is_empty() {
            // Only now: until all are cancelled, a concurrent cancel must reach the children, too.
            self.0.forget_children();
            below.iter().for_each(|token| token.forget_children());
        }
    }

    /// Waits until the token is cancelled.
    ///
    /// # Cancellation
    /// A cancellation point for the task and its enclosing scopes; the awaited token does not
    /// unwind the caller.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let token = fibra::CancelToken::new();
    /// let waiter = fibra::spawn({ let token = token.clone(); move || token.cancelled() });
    /// token.cancel();
    /// assert!(waiter.join().is_ok());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn cancelled(&self) {
        self.wait(None);
    }

    /// Waits until the token is cancelled, at most for `timeout`.
    ///
    /// Returns true if it was cancelled.
    ///
    /// # Cancellation
    /// As for [`cancelled`](CancelToken::cancelled).
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use std::time::{Duration, Instant};
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let token = fibra::CancelToken::new();
    /// assert!(!token.cancelled_timeout(Duration::from_millis(1)));
    /// token.cancel();
    /// assert!(token.cancelled_deadline(Instant::now() + Duration::from_secs(60)));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn cancelled_timeout(&self, timeout: Duration) -> bool {
        self.wait(sleep::deadline(timeout))
    }

    /// Waits until the token is cancelled, at most until `deadline`.
    ///
    /// Returns true if it was cancelled.
    ///
    /// # Cancellation
    /// As for [`cancelled`](CancelToken::cancelled).
    pub fn cancelled_deadline(&self, deadline: Instant) -> bool {
        self.wait(Some(deadline))
    }

    fn wait(&self, deadline: Option<Instant>) -> bool {
        cancel_points::checkpoint();
        if self.0.is_cancelled() {
            return true;
        }
        let until = Until::unwind(deadline).described(&CANCEL_TOKEN);
        self.0.queue.wait_until(0, until, |is_served| *is_served)
    }

    /// Makes an arm of a select.
    #[doc(hidden)]
    pub fn queue_arm(&self) -> QueueArm<'_, bool, ()> {
        static RULES: ArmRules<bool, ()> = ArmRules::new(|&is_served, (), _| is_served);
        QueueArm::new(&self.0.queue, 0, (), &RULES).described(&CANCEL_TOKEN)
    }

    /// Runs `f` until it returns or the token is cancelled.
    ///
    /// A cancelled token unwinds `f` at its next cancellation point, as [`timeout`](crate::timeout)
    /// does when the time has run out.
    ///
    /// # Cancellation
    /// Adds the token to the cancellation points of `f`; is none itself.
    ///
    /// # Panics
    /// Panics off a task, as on a thread of the blocking pool. Resumes a panic of `f`.
    ///
    /// # Errors
    /// [`Cancelled`], when `f` was unwound. If `f` returns, its value counts, even if the token was
    /// cancelled.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let token = fibra::CancelToken::new();
    /// assert_eq!(token.scope(|| 1), Ok(1));
    /// token.cancel();
    /// assert!(token.scope(fibra::task::park).is_err(), "unwound");
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn scope<T>(&self, f: impl FnOnce() -> T) -> Result<T, Cancelled> {
        let task = context::task().expect(
            "a token unwinds a task, and threads of the blocking pool run none: call `scope` from inside \
             `fibra::run` or a spawned task, or ask `is_cancelled`",
        );
        let bound = Bound::token(Arc::clone(&self.0.cancelled));
        let _registration = self.register(Task::counted(*task));
        bound.run(task.header(), f).ok_or(Cancelled(()))
    }

    fn register(&self, task: Task) -> Registration<'_> {
        let mut state = self.0.lock();
        if self.0.is_cancelled() {
            task.header().cancel_flags.set_fired();
        }
        let place = state.scopes.insert(task.clone());
        Registration { token: &self.0, task, place }
    }

    /// Makes a guard that cancels the token when it is dropped.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let token = fibra::CancelToken::new();
    /// drop(token.clone().drop_guard().disarm());
    /// assert!(!token.is_cancelled());
    /// drop(token.clone().drop_guard());
    /// assert!(token.is_cancelled());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn drop_guard(self) -> DropGuard {
        DropGuard(Some(self))
    }
}

impl Inner {
    fn is_cancelled(&self) -> bool {
        // Acquire: pairs with the swap in `fire`; the caller sees what was done before the cancel.
        self.cancelled.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels this token alone, unless it is cancelled already.
    ///
    /// Returns the children that may not be cancelled yet.
    fn fire(&self) -> Vec<Arc<Inner>> {
        let (tasks, children) = {
            let state = self.lock();
            let children = state.children.iter().filter_map(|(_, child)| child.upgrade()).collect();
            // SeqCst: comes before the mark in the header of a task in a scope, which is the store of the pair with `ASLEEP`.
            if self.cancelled.swap(true, Ordering::SeqCst) {
                return children;
            }
            (state.scopes.iter().map(|(_, task)| task.clone()).collect::<Vec<Task>>(), children)
        };
        tasks.iter().for_each(|task| task.as_ref().fire());
        self.queue.with(|is_served, waiters| {
            *is_served = true;
            waiters.serve_all(0);
        });
        children
    }

    /// Forgets the children, once all descendants are cancelled, so that the next cancel is short.
    ///
    /// A cancelled token gets no more children.
    fn forget_children(&self) {
        let children = mem::take(&mut self.lock().children);
        drop(children);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A loop: nested drops of a long chain of tokens would overflow the stack.
        let mut parent = self.parent.take();
        while let Some((token, place)) = parent {
            drop(token.lock().children.try_remove(place));
            parent = Arc::into_inner(token).and_then(|mut token| token.parent.take());
        }
    }
}

/// Keeps a scope in the token's list until it is dropped.
struct Registration<'a> {
    token: &'a Inner,
    task: Task,
    place: usize,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        let entry = self.token.lock().scopes.remove(self.place);
        drop(entry);
        if self.task.header().cancel_flags.any() {
            self.task.header().forget_token();
        }
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for CancelToken {
    /// Returns true for clones of one token.
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl Eq for CancelToken {}

// Its state changes under locks and by atomics, so a panic between two uses leaves it whole.
impl UnwindSafe for CancelToken {}
impl RefUnwindSafe for CancelToken {}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("cancelled", &self.0.is_cancelled()).finish_non_exhaustive()
    }
}

/// Cancels a [`CancelToken`] when it is dropped; see [`CancelToken::drop_guard`].
#[derive(Debug)]
#[must_use = "the token is cancelled when this is dropped"]
pub struct DropGuard(Option<CancelToken>);

impl DropGuard {
    /// Returns the token without cancelling it.
    pub fn disarm(mut self) -> CancelToken {
        self.0.take().expect("only taken here")
    }
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }
}
