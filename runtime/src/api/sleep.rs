//! Sleeps and deadlines.

#![forbid(unsafe_code)]

use std::ptr;
use std::thread;

use std::time::{Duration, Instant};

use crate::api::yield_now;
use crate::base::clock;
use crate::sleep::cancel_points;
use crate::sleep::task_sleep;
use crate::tasks::cancel;
use crate::tasks::context;
use crate::tasks::forbid;
use crate::tasks::thread_deadlines;
use crate::waiter::description::{EndedBy, WaitDescription, WaitRecord};
use crate::waiter::kind::WakeHandle;
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};

/// Sleeps without a notification: only the deadline or a cancel ends it.
struct ForTheClock;

impl WaitStrategy for ForTheClock {
    fn after_asleep(&self, _me: WakeHandle<'_>) -> Asleep {
        Asleep::Stay
    }

    fn before_awake(&self, _why: Waking) -> Withdrawal {
        Withdrawal::Withdrawn
    }

    fn record(&self) -> *const WaitRecord {
        const RECORD: &WaitRecord =
            &WaitRecord::new(&WaitDescription::new("sleep").ended_by(EndedBy::Clock), ptr::null());
        RECORD
    }
}

/// Returns the time that is `timeout` from now, or `None` if the clock has none.
///
/// For several waits that share one timeout: what remains after one of them is left to the next.
///
/// # Examples
/// ```
/// use fibra_runtime::time::{Duration, Instant, deadline};
/// let end = deadline(Duration::from_secs(5)).expect("within this century");
/// assert!(end > Instant::now());
/// assert_eq!(deadline(Duration::MAX), None);
/// ```
pub fn deadline(timeout: Duration) -> Option<Instant> {
    clock::now().checked_add(timeout)
}

/// Puts the calling task to sleep for at least `duration`.
///
/// On a plain thread it is [`std::thread::sleep`].
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
#[track_caller]
pub fn sleep(duration: Duration) {
    if context::task().is_none() && !thread_deadlines::is_any() {
        forbid::check_thread_wait(|| "the clock (`sleep`)".to_owned());
        return thread::sleep(duration);
    }
    sleep_to(deadline(duration));
}

/// Puts the calling task to sleep until `deadline`.
///
/// When the deadline has passed, it returns after all ready tasks have run.
///
/// # Cancellation
/// A cancellation point.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use std::time::{Duration, Instant};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let deadline = Instant::now() + Duration::from_millis(2);
/// fibra::sleep_until(deadline);
/// assert!(Instant::now() >= deadline);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn sleep_until(deadline: Instant) {
    if context::task().is_none() && !thread_deadlines::is_any() {
        forbid::check_thread_wait(|| "the clock (`sleep_until`)".to_owned());
        return thread::sleep(deadline.saturating_duration_since(clock::now()));
    }
    if deadline <= clock::now() {
        return yield_now::yield_now();
    }
    sleep_to(Some(deadline));
}

/// Puts the calling task to sleep for `duration`, whatever befalls it meanwhile.
pub(crate) fn sleep_shielded(duration: Duration) {
    task_sleep::sleep_shielded(&ForTheClock, deadline(duration));
}

/// Sleeps until `deadline`, on a plain thread too; without end where there is none.
#[doc(hidden)]
#[track_caller]
pub fn sleep_to(deadline: Option<Instant>) {
    match cancel::CAN_UNWIND {
        true => sleep_within(deadline),
        // It could not say that it was cut short.
        false => _ = task_sleep::sleep_shielded(&ForTheClock, deadline),
    }
}

/// Sleeps and reports a cancel, also where nothing can be unwound.
#[doc(hidden)]
#[track_caller]
pub fn sleep_within(deadline: Option<Instant>) {
    if task_sleep::sleep(&ForTheClock, deadline) == Waking::Cancelled {
        cancel_points::unwind_cancelled();
    }
}
