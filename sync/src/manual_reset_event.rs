//! The manual-reset event.
//!
//! ```text
//!               set: serves all waiters
//!   closed ────────────────────────────▶ open
//!          ◀────────────────────────────
//!               reset
//! ```
//!
//! The flag changes under the lock of the queue, and an arrival looks at it under that lock. So a
//! set serves exactly the waiters that came before it, also if a reset follows at once. An open
//! event takes no lock.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::budget;
use crate::messages::shown;
use crate::primitive::{AtomicBool, Ordering};
use crate::wait::{self, ArmPolicy, QueueArm, Until, WaitDescription, WaitQueue, Waiters};

static MANUAL_RESET: WaitDescription = WaitDescription::new("manual event");

/// Lets all callers through from a set until the next reset.
///
/// # Fairness
/// A [`set`](ManualResetEvent::set) wakes all waiters in the order of arrival, also when a
/// [`reset`](ManualResetEvent::reset) follows at once.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use fibra_sync as sync;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let start = Arc::new(sync::ManualResetEvent::new(false));
/// let gate = Arc::clone(&start);
/// let runner = fibra::spawn(move || gate.wait());
/// start.set();
/// runner.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ManualResetEvent {
    /// Changes under the lock of the queue only.
    is_set: AtomicBool,
    queue: WaitQueue<(), ()>,
}

impl ManualResetEvent {
    /// Makes an event that is set, or not.
    pub const fn new(set: bool) -> Self {
        ManualResetEvent { is_set: AtomicBool::new(set), queue: WaitQueue::new(()) }
    }

    /// Returns true while the event is set.
    pub fn is_set(&self) -> bool {
        wait::charge();
        self.has_set()
    }

    pub(crate) fn has_set(&self) -> bool {
        // Acquire: pairs with the Release in `set`: what was done before the set is seen after the wait.
        self.is_set.load(Ordering::Acquire)
    }

    /// Sets the event and wakes all waiters.
    pub fn set(&self) {
        wait::point();
        self.queue.with(|(), waiters| {
            // Release: pairs with the Acquire in `is_set`.
            self.is_set.store(true, Ordering::Release);
            waiters.serve_all(0);
        });
    }

    /// Resets the event: later callers wait for the next [`set`](ManualResetEvent::set).
    pub fn reset(&self) {
        wait::point();
        // Relaxed: nothing is published.
        self.queue.with(|(), _| self.is_set.store(false, Ordering::Relaxed));
    }

    /// Waits until the event is set.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait(&self) {
        self.wait_to(|| None);
    }

    /// Waits at most `timeout` until the event is set; returns true if it was set.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let event = fibra_sync::ManualResetEvent::new(false);
    /// assert!(!event.wait_timeout(Duration::from_millis(1)));
    /// event.set();
    /// assert!(event.is_set() && event.wait_deadline(Instant::now()));
    /// fibra_runtime::block_on(event.wait_async());
    /// event.reset();
    /// assert!(!event.is_set());
    /// ```
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_to(|| time::deadline(timeout))
    }

    /// Waits at most until `deadline` for the event; returns true if it was set.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn wait_deadline(&self, deadline: Instant) -> bool {
        self.wait_to(|| Some(deadline))
    }

    /// Waits until the event is set, as a future, for `async` code.
    ///
    /// # Cancellation
    /// May be dropped at any time.
    pub async fn wait_async(&self) {
        match self.has_set() {
            true => budget::charge().await,
            false => self.queue.wait_until_async(0, |()| self.has_set()).await,
        }
    }

    fn wait_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> bool {
        wait::checkpoint();
        if self.has_set() {
            return true;
        }
        let until = Until::unwind(deadline()).described(&MANUAL_RESET);
        self.queue.wait_until(0, until, |()| self.has_set())
    }

    /// Makes an arm of a select.
    pub(crate) fn queue_arm(&self) -> QueueArm<'_, (), (), 1, Self> {
        QueueArm::new(&self.queue, 0, (), self).described(&MANUAL_RESET)
    }
}

impl ArmPolicy<(), (), 1> for ManualResetEvent {
    fn is_ready(&self, (): &(), (): &mut (), _waiters: &Waiters<'_, (), 1>) -> bool {
        self.has_set()
    }
}

shown!(ManualResetEvent: it => set: it.has_set());
