//! The notification.
//!
//! ```text
//!                     notify_one, no waiter
//!   nothing is kept ─────────────────────────▶ one permit is kept
//!                   ◀─────────────────────────
//!                     notified
//! ```
//!
//! All changes are made under the lock of the queue. A waiter that `notify_one` has served and that does not take it, as a future
//! that is dropped, passes it on as though it were notified anew. `notify_waiters` begins a new round: a future of an earlier
//! round is notified, whether it was polled before or not.

#![forbid(unsafe_code)]

use std::mem;
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::budget;
use crate::messages::shown;
use crate::wait::{
    self, Admit, ArmRules, Left, Outcome, QueueArm, Until, WaitDescription, WaitQueue, Waiters,
};

static NOTIFY: WaitDescription = WaitDescription::new("notification");

/// Notifies one waiter, or all of them, that something has changed.
///
/// It is tokio's, with its names: beside the futures of [`notified_async`](Notify::notified_async)
/// tasks and threads wait by [`notified`](Notify::notified), all in one queue.
///
/// To let callers through until further notice use [`ManualResetEvent`](crate::ManualResetEvent), to
/// wait for a condition of a value [`Condvar`](crate::Condvar), to count [`Semaphore`](crate::Semaphore).
///
/// # Fairness
/// First come, first served.
///
/// # Differences from tokio's
/// There is no `notify_last`, and no `enable`: a wait of `notified` is in the queue once it waits.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra_sync::{Mutex, Notify};
/// use std::collections::VecDeque;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let queue = Arc::new((Mutex::new(VecDeque::new()), Notify::new()));
/// let theirs = Arc::clone(&queue);
/// let consumer = fibra::spawn(move || loop {
///     if let Some(value) = theirs.0.lock().pop_front() {
///         return value;
///     }
///     theirs.1.notified();
/// });
/// queue.0.lock().push_back(7);
/// queue.1.notify_one();
/// assert_eq!(consumer.join().unwrap(), 7);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Notify {
    /// A waiter knows whether it was given the notification of one.
    queue: WaitQueue<State, bool>,
}

/// What the lock of the queue protects.
pub struct State {
    /// True if a notification of one is kept for the next caller.
    has_permit: bool,
    /// Counts the notifications of all.
    round: u64,
}

static RULES: ArmRules<State, bool> = ArmRules::new(|state, _, _| state.has_permit);

impl Notify {
    /// Makes a notification that is not given yet.
    pub const fn new() -> Self {
        Notify { queue: WaitQueue::new(State { has_permit: false, round: 0 }) }
    }

    /// Notifies the longest waiter, or else the next caller.
    ///
    /// Notifications without a waiter are kept as one.
    pub fn notify_one(&self) {
        wait::point();
        self.queue.with(give);
    }

    /// Notifies all present waiters.
    ///
    /// They are those that wait, and the futures of [`notified_async`](Notify::notified_async) that
    /// were made before. Nothing is kept for later callers.
    pub fn notify_waiters(&self) {
        wait::point();
        self.queue.with(|state, waiters| {
            state.round += 1;
            waiters.serve_all(0);
        });
    }

    /// Waits for a notification.
    ///
    /// # Cancellation
    /// A cancellation point. A caller that unwinds has used no notification.
    pub fn notified(&self) {
        self.wait_to(|| None);
    }

    /// Waits for a notification, but no longer than `timeout`.
    ///
    /// Returns true if it came; otherwise none was used.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let notify = fibra_sync::Notify::new();
    /// notify.notify_waiters();
    /// assert!(!notify.notified_timeout(Duration::from_millis(1)));
    /// notify.notify_one();
    /// notify.notify_one();
    /// assert!(notify.notified_deadline(Instant::now()));
    /// assert!(!notify.notified_deadline(Instant::now()), "two were kept as one");
    /// ```
    pub fn notified_timeout(&self, timeout: Duration) -> bool {
        self.wait_to(|| time::deadline(timeout))
    }

    /// Waits for a notification, but not beyond `deadline`.
    ///
    /// Returns true if it came; otherwise none was used.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn notified_deadline(&self, deadline: Instant) -> bool {
        self.wait_to(|| Some(deadline))
    }

    /// Waits for a notification, as a future, for `async` code.
    ///
    /// It stands in the queue from its first poll on. A [`notify_waiters`](Notify::notify_waiters)
    /// notifies it from its making on, so a caller that makes it, then looks at what may have
    /// changed, and then waits misses no change. A task waits for it by
    /// [`block_on`](fibra_runtime::block_on).
    ///
    /// # Cancellation
    /// Dropped before its end, the future leaves the queue. What
    /// [`notify_one`](Notify::notify_one) has given it goes to the next waiter, or is kept.
    ///
    /// # Examples
    /// ```
    /// let notify = fibra_sync::Notify::new();
    /// let notified = notify.notified_async();
    /// notify.notify_waiters();
    /// fibra_runtime::block_on(notified);
    /// ```
    pub fn notified_async(&self) -> impl Future<Output = ()> + Send {
        let round = self.queue.with(|state, _| state.round);
        async move {
            // A future that has to wait is in the queue from its first poll on, so only one that need not wait may yield.
            if self.queue.with(|state, _| state.has_permit || state.round != round) {
                budget::charge().await;
            }
            self.queue
                .wait_async(
                    0,
                    false,
                    |state, _, _| if state.round == round { arrive(state) } else { Admit::Done(()) },
                    leave,
                )
                .await;
        }
    }

    fn wait_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> bool {
        wait::checkpoint();
        if self.take() {
            return true;
        }
        let until = Until::unwind(deadline()).spinning().described(&NOTIFY);
        let (outcome, _) = self.queue.wait(0, false, until, |state, _, _| arrive(state), || (), leave);
        matches!(outcome, Outcome::Done(()) | Outcome::Served)
    }

    /// Uses the notification that is kept, if any.
    pub(crate) fn take(&self) -> bool {
        self.queue.with(|state, _| mem::take(&mut state.has_permit))
    }

    /// Makes an arm of a select.
    pub(crate) fn queue_arm(&self) -> QueueArm<'_, State, bool> {
        QueueArm::new(&self.queue, 0, false, &RULES).described(&NOTIFY)
    }
}

fn arrive(state: &mut State) -> Admit<()> {
    Admit::if_ready(mem::take(&mut state.has_permit))
}

fn give(state: &mut State, waiters: &mut Waiters<'_, bool, 1>) {
    if waiters.serve_front(0, |is_of_one| *is_of_one = true).is_none() {
        state.has_permit = true;
    }
}

fn leave(state: &mut State, is_of_one: &mut bool, waiters: &mut Waiters<'_, bool, 1>, left: Left) {
    if left == Left::Served && *is_of_one {
        give(state, waiters);
    }
}

impl Default for Notify {
    fn default() -> Self {
        Notify::new()
    }
}

shown!(Notify);
