//! Sleeping for a time.

use std::thread;
use std::time::{Duration, Instant};

use crate::current;
use crate::wait::{self, Asleep, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// Nobody notifies: only the deadline or a cancel ends it.
struct ForTheClock;

impl WaitStrategy for ForTheClock {
    fn after_asleep(&self, _me: WakeHandle<'_>) -> Asleep {
        Asleep::Stay
    }

    fn before_awake(&self, _why: Waking) -> Withdrawal {
        Withdrawal::Withdrawn
    }
}

/// Puts the calling task to sleep for at least `duration`. On a plain thread it is [`std::thread::sleep`].
///
/// Timers have a resolution of 16 µs and never end early.
///
/// # Cancellation
/// A cancellation point.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::time::{Duration, Instant};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let begin = Instant::now();
/// fibra::sleep(Duration::from_millis(2));
/// assert!(begin.elapsed() >= Duration::from_millis(2));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn sleep(duration: Duration) {
    if current::task().is_none() {
        return thread::sleep(duration);
    }
    // Beyond what the clock can tell it is for ever.
    sleep_to(Instant::now().checked_add(duration));
}

/// Puts the calling task to sleep until `deadline`. Returns at once when that has passed, after letting others run.
///
/// # Cancellation
/// A cancellation point.
pub fn sleep_until(deadline: Instant) {
    if current::task().is_none() {
        return thread::sleep(deadline.saturating_duration_since(Instant::now()));
    }
    if deadline <= Instant::now() {
        return crate::task::yield_now();
    }
    sleep_to(Some(deadline));
}

fn sleep_to(deadline: Option<Instant>) {
    if wait::sleep(&ForTheClock, deadline) == Waking::Cancelled {
        wait::unwind_cancelled();
    }
}
