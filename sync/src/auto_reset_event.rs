//! The auto-reset event.
//!
//! ```text
//!             set, no waiter                   set, a waiter: hands the set over
//!   closed ──────────────────▶ set     closed ──────────────────────────────────▶ closed
//!          ◀──────────────────
//!           wait, or reset
//!
//!  63                                1 0
//! ┌───────────────────────────────────┬─────┐
//! │ age: how many resets came before  │ SET │    changes under the lock of the queue only, and is read without it
//! └───────────────────────────────────┴─────┘
//! ```
//!
//! A future that is dropped may have been handed a set that it did not use, and so may the operation of a select. The set is
//! then passed on as though it had never been handed over: to a waiter, or to the event. A reset in between has taken back a
//! set that no waiter uses. So each reset begins a new age, and the set of a former age goes only to a waiter that has
//! arrived in that age or before.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use fibra_runtime::clock;
use fibra_runtime::time;

use crate::budget;
use crate::messages::shown;
use crate::primitive::{AtomicU64, Ordering};
use crate::wait::{
    self, Admit, ArmPolicy, Left, Looks, Outcome, QueueArm, Until, WaitDescription, WaitQueue, Waiters,
};

static AUTO_RESET: WaitDescription = WaitDescription::new("auto-reset event");

/// Lets one caller through for each [`set`](AutoResetEvent::set).
///
/// A set without a waiter is kept for the next caller, once: a further set before that adds
/// nothing. To let all callers through use [`ManualResetEvent`](crate::ManualResetEvent), to count
/// the sets use [`Semaphore`](crate::Semaphore).
///
/// # Fairness
/// First come, first served. A set is handed to the longest waiter, and no later caller can take it
/// away.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use fibra_sync as sync;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let turns = Arc::new([const { sync::AutoResetEvent::new(false) }; 2]);
/// let theirs = Arc::clone(&turns);
/// let partner = fibra::spawn(move || {
///     theirs[0].wait();
///     theirs[1].set();
/// });
/// turns[0].set();
/// turns[1].wait();
/// assert!(!turns[1].is_set());
/// partner.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The algorithm is that of Vélez's gate, open or closed, and of Preshing's auto-reset event. The
/// status of the latter is 1 when set and −N with N waiters; here the queue counts the waiters.
pub struct AutoResetEvent {
    word: AtomicU64,
    queue: WaitQueue<(), Age>,
}

/// Counts the resets so far, times two.
///
/// A waiter has the age of its arrival; once it is served, the age of the set.
pub(crate) type Age = u64;

const SET: u64 = 1;
const ONE_AGE: Age = 2;

impl AutoResetEvent {
    /// Makes an event that is set, or not.
    pub const fn new(set: bool) -> Self {
        AutoResetEvent { word: AtomicU64::new(set as u64), queue: WaitQueue::new(()) }
    }

    /// Returns true while a set is kept for the next caller.
    ///
    /// Another caller may use it before this returns.
    pub fn is_set(&self) -> bool {
        wait::charge();
        self.has_set()
    }

    fn has_set(&self) -> bool {
        self.word() & SET != 0
    }

    /// Lets the longest waiter through, or else the next caller.
    #[inline]
    pub fn set(&self) {
        wait::point();
        self.queue.with(|(), waiters| {
            let age = self.age();
            if waiters.serve_front(0, |of_set| *of_set = age).is_none() {
                self.change(age | SET);
            }
        });
    }

    /// Takes back an unused set.
    ///
    /// This holds too for the set of a future, or of an operation that a
    /// [`Select`](crate::channel::Select) has chosen, that is dropped later without its use: the
    /// reset wins. Of waiters only those get that set that came before the reset.
    pub fn reset(&self) {
        wait::point();
        self.queue.with(|(), _| self.change(self.age() + ONE_AGE));
    }

    /// Uses the set if there is one, without a wait. Returns true if it did.
    pub fn try_wait(&self) -> bool {
        wait::charge();
        self.take_set().is_some()
    }

    /// Uses the set if there is one, and returns its age.
    pub(crate) fn take_set(&self) -> Option<Age> {
        self.has_set().then(|| self.queue.with(|(), _| self.take())).flatten()
    }

    /// Waits for a set of its own.
    ///
    /// # Cancellation
    /// A cancellation point. A caller that unwinds has used no set.
    #[inline(always)]
    pub fn wait(&self) {
        self.wait_to(|| None);
    }

    /// Waits for a set of its own, but no longer than `timeout`.
    ///
    /// Returns true if it came; otherwise no set was used.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let event = fibra_sync::AutoResetEvent::new(true);
    /// assert!(event.try_wait() && !event.try_wait());
    /// event.set();
    /// event.reset();
    /// assert!(!event.wait_timeout(Duration::from_millis(1)));
    /// event.set();
    /// assert!(event.wait_deadline(Instant::now()));
    /// event.set();
    /// fibra_runtime::block_on(event.wait_async());
    /// assert!(!event.is_set());
    /// ```
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_to(|| time::deadline(timeout))
    }

    /// Waits for a set of its own, but not beyond `deadline`.
    ///
    /// Returns true if it came; otherwise no set was used.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait_deadline(&self, deadline: Instant) -> bool {
        self.wait_to(|| Some(deadline))
    }

    /// Waits for a set of its own, as a future, for `async` code.
    ///
    /// It stands in the queue from its first poll on, or from the next one where the first one only yields.
    ///
    /// # Cancellation
    /// Dropped before its end, the future leaves the queue. A set that it was served meanwhile goes
    /// to the next waiter, or is kept unless a [`reset`](AutoResetEvent::reset) came in between.
    pub async fn wait_async(&self) {
        budget::charge().await;
        if self.take_set().is_none() {
            self.queue
                .wait_async(
                    0,
                    0,
                    |(), age, _| self.arrive(age),
                    |(), age, waiters, left| self.leave(*age, waiters, left),
                )
                .await;
        }
    }

    #[inline(always)]
    fn wait_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> bool {
        wait::checkpoint();
        if self.take_set().is_some() {
            return true;
        }
        let deadline = deadline();
        // A spin before the waiter is in the queue: a set then writes the event alone.
        if !clock::has_passed(deadline) && wait::back_off_until(Looks::Often, || self.take_set().is_some()) {
            return true;
        }
        let until = Until::unwind(deadline).described(&AUTO_RESET);
        let (outcome, _) = self.queue.wait(
            0,
            0,
            until,
            |(), age, _| self.arrive(age),
            || (),
            |(), age, waiters, left| self.leave(*age, waiters, left),
        );
        matches!(outcome, Outcome::Done(()) | Outcome::Served)
    }

    fn word(&self) -> u64 {
        // Acquire: pairs with the Release in `change`, for looks without the lock.
        self.word.load(Ordering::Acquire)
    }

    fn age(&self) -> Age {
        self.word() & !SET
    }

    /// Stores the word. The caller holds the lock of the queue, as for the functions below.
    fn change(&self, word: u64) {
        // Release: as in `word`.
        self.word.store(word, Ordering::Release);
    }

    fn take(&self) -> Option<Age> {
        let (word, age) = (self.word(), self.age());
        (word != age).then(|| {
            self.change(age);
            age
        })
    }

    /// Waits only where the event is not set, so no waiter is overtaken.
    fn arrive(&self, age: &mut Age) -> Admit<()> {
        if self.take().is_some() {
            return Admit::Done(());
        }
        *age = self.age();
        Admit::Back
    }

    /// Passes on the set of that age, which was taken and is not used.
    pub(crate) fn pass_on(&self, age: Age) {
        self.queue.with(|(), waiters| self.leave(age, waiters, Left::Served));
    }

    /// Passes on the set of a waiter that does not use it: to a waiter, or to the event.
    fn leave(&self, age: Age, waiters: &mut Waiters<'_, Age, 1>, left: Left) {
        if left == Left::Unserved {
            return;
        }
        let is_of_now = age == self.age();
        let has_come = |arrival: &Age| is_of_now || *arrival <= age;
        let served = waiters.serve_front_if(0, has_come, |of_set| *of_set = age);
        if served.is_none() && is_of_now {
            self.change(age | SET);
        }
    }

    /// Makes an arm of a select.
    pub(crate) fn queue_arm(&self) -> QueueArm<'_, (), Age, 1, Self> {
        QueueArm::new(&self.queue, 0, 0, self).described(&AUTO_RESET)
    }
}

impl ArmPolicy<(), Age, 1> for AutoResetEvent {
    fn is_ready(&self, (): &(), age: &mut Age, _waiters: &Waiters<'_, Age, 1>) -> bool {
        *age = self.age();
        self.has_set()
    }
}

shown!(AutoResetEvent: it => set: it.has_set());
