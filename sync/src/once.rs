//! `Once`: an initialization that runs once.

#![forbid(unsafe_code)]

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::budget;
use crate::messages::shown;
use crate::wait::{self, Outcome, Until};

mod raw;

pub(crate) use raw::End;
use raw::{Ends, Phase, RawOnce};

/// Runs an initialization once.
///
/// The first call runs it; a call that finds it done costs one load. The initializer runs shielded from the cancellation of
/// its task, so that it is never left half done: the cancellation waits for the first cancellation point after it.
///
/// # Fairness
/// A completion wakes all waiters. After an initializer that panicked, the first waiter of
/// [`call_once_force`](Once::call_once_force) that gets to run begins its own, and the others wait for that one.
///
/// # Deadlocks
/// A running initializer is like the holder of a lock: two that wait for each other hang. So does a panic hook that waits for
/// the initializer that panics, since its run has not ended yet. See [`Mutex`](crate::Mutex#deadlocks).
///
/// # Differences from std
/// Waiting leaves the thread to other tasks. A task that waits for its own initializer panics, where std may wait for ever.
/// There is [`wait_timeout`](Once::wait_timeout). There is no `async` form, since the owner of a run is a task or a thread;
/// [`OnceCell::wait_async`](crate::OnceCell::wait_async) waits for a value.
///
/// # Examples
/// ```
/// # use fibra_sync as sync;
/// static START: sync::Once = sync::Once::new();
/// let mut runs = 0;
/// START.call_once(|| runs += 1);
/// START.call_once(|| runs += 1);
/// assert_eq!(runs, 1);
/// assert!(START.is_completed());
/// ```
pub struct Once {
    raw: RawOnce,
}

/// The state of a [`Once`], and what the initializer of [`Once::call_once_force`] hears of earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnceState {
    /// No initializer runs, and none has panicked or completed.
    New,
    /// An initializer panicked, and none has begun since.
    Poisoned,
    /// An initializer runs.
    InProgress,
    /// An initializer has run to its end.
    Done,
}

impl OnceState {
    fn of(phase: Phase) -> Self {
        match phase {
            Phase::Incomplete => OnceState::New,
            Phase::Poisoned => OnceState::Poisoned,
            Phase::Running { .. } => OnceState::InProgress,
            Phase::Complete => OnceState::Done,
        }
    }

    /// Returns true if an earlier initializer panicked.
    pub fn is_poisoned(&self) -> bool {
        *self == OnceState::Poisoned
    }

    /// Returns true if an initializer has run to its end.
    pub fn is_completed(&self) -> bool {
        *self == OnceState::Done
    }
}

/// The word for the primitive in the messages of panics.
#[derive(Clone, Copy)]
pub(crate) struct Name(pub(crate) &'static str);

const ONCE: Name = Name("Once");

impl Once {
    /// Creates an initialization that has not happened.
    pub const fn new() -> Self {
        Once { raw: RawOnce::new() }
    }

    /// Creates an initialization that has happened.
    pub(crate) const fn completed() -> Self {
        Once { raw: RawOnce::completed() }
    }

    /// Runs `f` if no other call did. Returns once an initializer has run to its end.
    ///
    /// While another caller's initializer runs, this waits for its end without a limit, as in std.
    /// [`wait_timeout`](Once::wait_timeout) waits with a limit and runs nothing. What the initializer wrote is visible after.
    ///
    /// # Cancellation
    /// No cancellation point, as for a lock. `f` runs shielded.
    ///
    /// # Panics
    /// Panics if `f` does, which poisons this for all calls but [`call_once_force`](Once::call_once_force). Panics if it is
    /// poisoned already, and if the caller is this very initializer.
    #[inline]
    #[track_caller]
    pub fn call_once(&self, f: impl FnOnce()) {
        self.call_unless_complete(false, |_| f());
    }

    /// Runs `f` if no other call completed, also after initializers that panicked.
    ///
    /// # Cancellation
    /// That of [`call_once`](Once::call_once).
    ///
    /// # Panics
    /// Panics if `f` does, which poisons this, and if the caller is this very initializer.
    ///
    /// # Examples
    /// ```
    /// # use fibra_sync as sync;
    /// let once = sync::Once::new();
    /// let failed = std::panic::catch_unwind(|| once.call_once(|| panic!("on purpose")));
    /// assert!(failed.is_err());
    /// once.call_once_force(|state| assert!(state.is_poisoned()));
    /// assert!(once.is_completed());
    /// ```
    #[inline]
    #[track_caller]
    pub fn call_once_force(&self, f: impl FnOnce(&OnceState)) {
        self.call_unless_complete(true, f);
    }

    #[inline]
    #[track_caller]
    fn call_unless_complete(&self, force: bool, f: impl FnOnce(&OnceState)) {
        wait::point();
        if !self.raw.is_complete() {
            self.call(ONCE, force, |state| {
                f(state);
                End::Complete
            });
        }
    }

    /// Returns true if an initializer has run to its end.
    ///
    /// What it wrote is then visible.
    #[inline]
    pub fn is_completed(&self) -> bool {
        wait::point();
        self.raw.is_complete() || budget::missed()
    }

    /// Returns the state at this moment.
    ///
    /// What an initializer wrote that has run to its end is then visible.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::{Once, OnceState};
    /// let once = Once::new();
    /// assert_eq!(once.state(), OnceState::New);
    /// once.call_once(|| assert_eq!(once.state(), OnceState::InProgress));
    /// assert!(once.state().is_completed());
    /// ```
    pub fn state(&self) -> OnceState {
        wait::point();
        let state = OnceState::of(self.raw.phase());
        if !state.is_completed() {
            budget::missed();
        }
        state
    }

    /// Waits until an initializer has run to its end.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if an initializer panicked and none has completed since, and if the caller is this very initializer.
    ///
    /// # Examples
    /// ```
    /// # use fibra_sync as sync;
    /// # use std::time::Duration;
    /// let once = sync::Once::new();
    /// assert!(!once.wait_timeout(Duration::from_millis(1)));
    /// std::thread::scope(|threads| {
    ///     threads.spawn(|| once.call_once(|| ()));
    ///     once.wait();
    /// });
    /// assert!(once.is_completed());
    /// ```
    #[track_caller]
    pub fn wait(&self) {
        self.wait_to(ONCE, false, None);
    }

    /// Waits for an initializer to succeed, also after initializers that panicked.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if the caller is this very initializer.
    ///
    /// # Examples
    /// ```
    /// let once = fibra_sync::Once::new();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| once.wait_force());
    ///     once.call_once(|| {});
    /// });
    /// assert!(once.is_completed());
    /// ```
    #[track_caller]
    pub fn wait_force(&self) {
        self.wait_to(ONCE, true, None);
    }

    /// Waits at most `timeout` for an initializer; returns true if one has succeeded.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Those of [`wait`](Once::wait).
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let once = fibra_sync::Once::new();
    /// assert!(!once.wait_timeout(Duration::from_millis(1)));
    /// once.call_once(|| {});
    /// assert!(once.wait_deadline(Instant::now() + Duration::from_secs(60)));
    /// ```
    #[track_caller]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_to(ONCE, false, time::deadline(timeout))
    }

    /// Waits until `deadline` for an initializer; returns true if one has succeeded.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Those of [`wait`](Once::wait).
    #[track_caller]
    pub fn wait_deadline(&self, deadline: Instant) -> bool {
        self.wait_to(ONCE, false, Some(deadline))
    }

    /// Runs `f` if no other call did. It returns how its run has ended.
    #[cold]
    #[track_caller]
    pub(crate) fn call(&self, name: Name, force: bool, f: impl FnOnce(&OnceState) -> End) {
        while !self.has_ended(name, force) {
            if let Some(before) = self.raw.begin(wait::owner(), force) {
                return self.run(OnceState::of(before), f);
            }
            let is_over = |phase| !matches!(phase, Phase::Running { .. });
            self.raw.wait(Ends::All, Until::shielded(None), is_over);
        }
    }

    /// Waits for a completion as a future.
    pub(crate) async fn await_completion_async(&self, name: Name) {
        if self.raw.is_complete() {
            return budget::charge().await;
        }
        let mut completion = pin!(self.raw.wait_complete_async());
        // Asked at each poll: the initializer itself may poll during the wait.
        poll_fn(|context| match self.has_ended(name, true) {
            true => Poll::Ready(()),
            false => completion.as_mut().poll(context),
        })
        .await;
    }

    fn run(&self, state: OnceState, f: impl FnOnce(&OnceState) -> End) {
        let mut run = Run { raw: &self.raw, end: End::Poisoned };
        run.end = fibra_runtime::task::shield(|| f(&state));
    }

    /// Waits for a completion. Panics at a poisoning, unless the caller waits by `force`. Returns
    /// false if the deadline came first.
    #[track_caller]
    pub(crate) fn wait_to(&self, name: Name, force: bool, deadline: Option<Instant>) -> bool {
        wait::checkpoint();
        let ends = if force { Ends::Completion } else { Ends::All };
        let is_over = |phase| phase == Phase::Complete || (phase == Phase::Poisoned && !force);
        while !self.has_ended(name, force) {
            if let Outcome::TimedOut = self.raw.wait(ends, Until::unwind(deadline), is_over) {
                return self.raw.is_complete();
            }
        }
        true
    }

    /// Returns true if it is completed. Panics if the caller cannot wait for that.
    #[track_caller]
    fn has_ended(&self, name: Name, force: bool) -> bool {
        match self.raw.phase() {
            Phase::Complete => true,
            Phase::Poisoned if !force => poisoned(name),
            Phase::Running { owner } if owner == wait::owner().get() => recursive(name),
            Phase::Incomplete | Phase::Poisoned | Phase::Running { .. } => false,
        }
    }
}

#[cold]
#[track_caller]
fn poisoned(name: Name) -> ! {
    panic!("{} has been poisoned: an earlier initializer panicked", name.0)
}

#[cold]
#[track_caller]
fn recursive(name: Name) -> ! {
    panic!(
        "{} waits for a {} that it is itself initializing; do not reach it from its own initializer",
        wait::describe_caller(),
        name.0
    )
}

/// Ends the run of an initializer when dropped. A run that unwinds ends as poisoned.
struct Run<'a> {
    raw: &'a RawOnce,
    end: End,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        wait::point();
        self.raw.end(self.end);
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

shown!(Once: it => completed: it.raw.is_complete());
