//! Deadlines over blocks of ordinary code.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use crate::api::sleep;
use crate::tasks::bounds::Bound;
use crate::tasks::context;
use crate::tasks::thread_deadlines;

/// Reports that the time of a [`timeout`] or [`timeout_at`] has run out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline has passed")
    }
}

impl Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> Self {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}

/// Runs `f`, at most for `duration`, and unwinds it when the time has run out.
///
/// When the time is over the next cancellation point unwinds `f`, as
/// [`Task::cancel`](crate::tasks::task::Task::cancel) unwinds a whole task, and the call returns
/// [`Elapsed`].
///
/// The deadline holds for every cancellation point that `f` reaches in this task: sleeps, joins,
/// channel operations, waits for events and sockets. Timeouts nest. The earliest deadline counts,
/// and the unwinding ends at the outermost timeout that has passed. Code that does not wait is not
/// interrupted: if `f` returns, late or not, its value counts.
///
/// A cancellation point unwinds `f` after the deadline even if it need not wait. A zero timeout
/// cancels at the first cancellation point, even if a message is ready; tokio's looks for the
/// message first. Use `try_recv` and the like to poll.
///
/// In a destructor that runs while the task unwinds the timeout ends nothing: a second unwinding
/// would end the process. There an operation needs a deadline of its own.
///
/// The deadline does not end the lock of a mutex, whose holder may be outside of `f`. See
/// [`task`](crate::task#cancellation) for the list.
///
/// On a plain thread, as on one of the blocking pool, it ends the waits of this library in the same
/// way: sleeps, parks, joins, events, channels, sockets and children. It does not end a call that
/// runs in place there, such as the read of a file or of a terminal and the lookup of a name.
///
/// What an operation leaves behind that is ended is in its docs, under *Cancellation*. The page `half_done` of the crate `fibra`
/// has all of them in tables.
///
/// # Cancellation
/// Adds a deadline to the cancellation points of `f`; is none itself.
///
/// # Panics
/// Resumes a panic of `f`.
///
/// # Errors
/// [`Elapsed`], when `f` was unwound.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use std::time::Duration;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let quick = fibra::timeout(Duration::from_secs(60), || 6 * 7);
/// assert_eq!(quick, Ok(42));
/// let slow = fibra::timeout(Duration::from_millis(1), || fibra::sleep(Duration::from_secs(60)));
/// assert!(slow.is_err());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn timeout<T>(duration: Duration, f: impl FnOnce() -> T) -> Result<T, Elapsed> {
    match sleep::deadline(duration) {
        Some(deadline) => timeout_at(deadline, f),
        None => Ok(f()),
    }
}

/// Runs `f`, at most until `deadline`, and unwinds it when the time has run out.
///
/// See [`timeout`] for the rules.
///
/// # Panics
/// Resumes a panic of `f`.
///
/// # Errors
/// [`Elapsed`], when `f` was unwound.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use std::time::{Duration, Instant};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let deadline = Instant::now() + Duration::from_millis(2);
/// assert!(fibra::timeout_at(deadline, fibra::task::park).is_err());
/// assert_eq!(fibra::timeout_at(deadline, || 1), Ok(1), "never waits");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn timeout_at<T>(deadline: Instant, f: impl FnOnce() -> T) -> Result<T, Elapsed> {
    let value = match context::task() {
        Some(task) => Bound::deadline(deadline).run(task.header(), f),
        None => thread_deadlines::run(deadline, f),
    };
    value.ok_or(Elapsed(()))
}
