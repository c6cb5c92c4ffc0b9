//! The countdown event; its state is in `countdown.rs`.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::countdown::{Added, Countdown, Signalled, Zero};
use crate::messages::shown;
use crate::wait::{self, WaitDescription};

static COUNTDOWN_EVENT: WaitDescription = WaitDescription::new("countdown event");

/// Gets set by a given number of signals, and stays set.
///
/// The number may be raised while it is not zero: a task that is counted may count others in. To use one count again and again
/// take a [`WaitGroup`](crate::WaitGroup).
///
/// # Fairness
/// The last signal wakes all waiters, first in, first out.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use fibra_sync as sync;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let loaded = Arc::new(sync::CountdownEvent::new(3));
/// for _ in 0..3 {
///     let loaded = Arc::clone(&loaded);
///     fibra::spawn(move || loaded.signal());
/// }
/// loaded.wait();
/// assert!(loaded.is_set());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// One of Toub's coordination primitives, and .NET's.
pub struct CountdownEvent {
    pub(crate) state: Countdown,
}

impl CountdownEvent {
    /// Makes an event that `count` signals will set. With zero it is set.
    pub const fn new(count: usize) -> Self {
        CountdownEvent { state: Countdown::new(count as u64) }
    }

    /// Returns how many signals are still missing.
    pub fn count(&self) -> usize {
        wait::charge();
        self.state.count() as usize
    }

    /// Returns true once all signals have come.
    pub fn is_set(&self) -> bool {
        wait::charge();
        self.state.count() == 0
    }

    /// Counts down by one; returns true if this was the last signal.
    ///
    /// The last signal wakes all waiters.
    ///
    /// # Panics
    /// Panics if the count is zero: there was a signal too many.
    #[track_caller]
    pub fn signal(&self) -> bool {
        self.signal_many(1)
    }

    /// Counts down by `count` at once. True at zero, which wakes all waiters.
    ///
    /// # Panics
    /// Panics if fewer are missing: the count is left as it is.
    #[track_caller]
    pub fn signal_many(&self, count: usize) -> bool {
        match self.state.signal(count as u64) {
            Signalled::Counted => false,
            Signalled::Last => true,
            Signalled::TooMany => panic!("a countdown below zero: signalled more often than was counted"),
        }
    }

    /// Asks for one more signal.
    ///
    /// # Panics
    /// Panics if the count is zero already: the waiters are gone.
    /// [`try_add`](CountdownEvent::try_add) tells.
    ///
    /// # Examples
    /// ```
    /// let event = fibra_sync::CountdownEvent::new(1);
    /// event.add();
    /// event.add_many(2);
    /// assert_eq!(event.count(), 4);
    /// assert!(event.signal_many(4), "the last signals");
    /// assert!(!event.try_add() && !event.try_add_many(2), "it is set");
    /// ```
    #[track_caller]
    pub fn add(&self) {
        self.add_many(1);
    }

    /// Asks for `count` more signals.
    ///
    /// # Panics
    /// Panics if the count is zero already, or would not fit into a `usize`.
    #[track_caller]
    pub fn add_many(&self, count: usize) {
        assert!(
            self.try_add_many(count),
            "a countdown that has reached zero stays there: add before the last signal"
        );
    }

    /// Asks for one more signal, unless the count is zero. Returns true if it was not.
    #[track_caller]
    pub fn try_add(&self) -> bool {
        self.try_add_many(1)
    }

    /// Asks for `count` more signals; returns false if the count is zero already.
    ///
    /// # Panics
    /// Panics if the count would not fit into a `usize`.
    #[track_caller]
    pub fn try_add_many(&self, count: usize) -> bool {
        match self.state.add(count as u64, Zero::Final) {
            Added::Counted => true,
            Added::Over => false,
            Added::TooMany => panic!("a countdown of more than usize::MAX"),
        }
    }

    /// Waits until the count is zero.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait(&self) {
        self.state.wait_to(|| None, &COUNTDOWN_EVENT);
    }

    /// Waits until the count is zero, at most for `timeout`. Returns true if it is.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let event = fibra_sync::CountdownEvent::new(1);
    /// assert!(!event.wait_timeout(Duration::from_millis(1)));
    /// assert!(event.signal() && event.is_set());
    /// assert!(event.wait_deadline(Instant::now() + Duration::from_secs(60)));
    /// fibra_runtime::block_on(event.wait_async());
    /// ```
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.state.wait_to(|| time::deadline(timeout), &COUNTDOWN_EVENT)
    }

    /// Waits until the count is zero, at most until `deadline`. Returns true if it is.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait_deadline(&self, deadline: Instant) -> bool {
        self.state.wait_to(|| Some(deadline), &COUNTDOWN_EVENT)
    }

    /// Waits until the count is zero, as a future.
    ///
    /// # Cancellation
    /// May be dropped at any time.
    pub async fn wait_async(&self) {
        self.state.wait_async().await;
    }
}

shown!(CountdownEvent: it => count: it.state.count());
