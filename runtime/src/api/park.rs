//! Park and unpark: a token that one task keeps for itself.
//!
//! The state and its transitions are in `parking.rs`. Nothing else uses the token: a join, a lock or a
//! socket that the task waits for neither takes it nor is ended by it.

#![forbid(unsafe_code)]

use std::ptr;
use std::time::{Duration, Instant};

use crate::api::sleep;
use crate::base::clock;
use crate::scheduler::simulated::point;
use crate::sleep::cancel_points;
use crate::sleep::task_sleep;
use crate::tasks::context;
use crate::tasks::forbid;
use crate::tasks::header::TaskRef;
use crate::tasks::parking::{Entered, Left, Parking, Unparked};
use crate::tasks::task::Task;
use crate::tasks::thread_deadlines;
use crate::waiter::description::{WaitDescription, WaitRecord};
use crate::waiter::kind::WakeHandle;
use crate::waiter::strategy::{Asleep, Flag, UntilRaised, Waking};

impl Flag for Parking {
    const SPINS: bool = true;
    const RECORD: &'static WaitRecord = &WaitRecord::new(&WaitDescription::new("park"), ptr::null());

    fn enter(&self, _me: WakeHandle<'_>) -> Asleep {
        match Parking::enter(self) {
            Entered::Parked => Asleep::Stay,
            Entered::TokenFirst => Asleep::Rouse,
        }
    }

    fn leave(&self, _why: Waking) -> bool {
        Parking::leave(self) == Left::Token
    }
}

/// Blocks the current task until it is unparked.
///
/// An [`unpark`](Task::unpark) that came before makes it return at once; several of them count as
/// one. There are no other returns: a park that ends was unparked. On a plain thread, and in a
/// closure of the blocking pool, it is [`std::thread::park`], which a [`Task`] does not reach.
///
/// # Cancellation
/// A cancellation point.
///
/// # Examples
/// ```
/// # use fibra_runtime::{self as fibra, task};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let parked = fibra::spawn(task::park);
/// parked.task().unpark();
/// parked.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[inline(always)]
pub fn park() {
    match context::task() {
        Some(task) => _ = park_until(*task, None),
        None => park_thread(None),
    }
}

/// Blocks the current task until it is unparked, at most for `timeout`.
///
/// Returns true if it was unparked. On a plain thread it is [`std::thread::park_timeout`], which
/// does not tell, and always returns true.
///
/// # Cancellation
/// A cancellation point.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use std::time::Duration;
/// use fibra::task;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// assert!(!task::park_timeout(Duration::from_millis(1)));
/// task::current().unpark();
/// assert!(task::park_timeout(Duration::from_secs(60)));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn park_timeout(timeout: Duration) -> bool {
    match context::task() {
        Some(task) => park_until(*task, sleep::deadline(timeout)),
        None => {
            park_thread(Some(timeout));
            true
        }
    }
}

/// Parks a plain thread, until the deadlines around the running code at most.
fn park_thread(timeout: Option<Duration>) {
    forbid::check_thread_wait(|| "its token (`park`)".to_owned());
    cancel_points::cancellation_point();
    let enclosing = thread_deadlines::earliest().filter(|_| !std::thread::panicking());
    let left = enclosing.map(|deadline| deadline.saturating_duration_since(clock::now()));
    match left.into_iter().chain(timeout).min() {
        Some(timeout) => std::thread::park_timeout(timeout),
        None => std::thread::park(),
    }
    // A token that came is left to the next park.
    cancel_points::cancellation_point();
}

#[inline(always)]
fn park_until(task: TaskRef, deadline: Option<Instant>) -> bool {
    // Before the token is taken: a task that is unwound here leaves it to its next park.
    cancel_points::checkpoint();
    let parking = &task.header().park;
    if parking.take_token() {
        return true;
    }
    match task_sleep::sleep(&UntilRaised(parking), deadline) {
        Waking::Notified => true,
        Waking::TimedOut => false,
        Waking::Cancelled => cancel_points::unwind_cancelled(),
    }
}

impl Task {
    /// Unparks the task: wakes it, or lets its next [`park`] return at once.
    ///
    /// # Examples
    /// See [`park`].
    pub fn unpark(&self) {
        point();
        if self.header().park.unpark() == Unparked::Wake {
            self.as_ref().notify();
        }
    }
}
