//! Deadlines over blocks of ordinary code.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use crate::api::sleep;
use crate::tasks::bounds::Bound;
use crate::tasks::context;
use crate::tasks::context::RunningTask;

/// Says that the time ran out that [`timeout`] or [`timeout_at`] had given.
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
/// The deadline holds for every sleep, join, channel operation, wait for an event and wait of a
/// socket that `f` makes, directly or in the functions that it calls, and for nothing that runs in
/// other tasks. Timeouts nest; the earliest deadline counts, and the outermost one that has passed
/// is where the unwinding ends. Code that does not wait is not interrupted: if `f` returns, late or
/// not, its value counts.
///
/// A point that is reached when the time is over unwinds `f` also where it would not have to wait.
/// With a `duration` of zero that is the first one, also if a message is there for it; tokio's
/// looks for the message first. To look without waiting there are `try_recv` and its like.
///
/// In a destructor that runs while the task unwinds it ends nothing, for a second unwinding would
/// end the process: an operation needs a deadline of its own there.
///
/// The lock of a mutex is waited for without a deadline, since its holder may be outside of `f`: see
/// [`task`](crate::task#cancellation) for the list.
///
/// # Cancellation
/// Adds a deadline to the cancellation points of `f`; is none itself.
///
/// # Panics
/// Off a task, as on a thread of the blocking pool. With the panic of `f`.
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
#[track_caller]
pub fn timeout<T>(duration: Duration, f: impl FnOnce() -> T) -> Result<T, Elapsed> {
    match sleep::deadline(duration) {
        Some(deadline) => timeout_at(deadline, f),
        None => {
            require_task();
            Ok(f())
        }
    }
}

/// Runs `f`, at most until `deadline`; otherwise as [`timeout`].
///
/// # Panics
/// Off a task, as on a thread of the blocking pool. With the panic of `f`.
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
#[track_caller]
pub fn timeout_at<T>(deadline: Instant, f: impl FnOnce() -> T) -> Result<T, Elapsed> {
    Bound::deadline(deadline).run(require_task().header(), f).ok_or(Elapsed(()))
}

#[track_caller]
fn require_task() -> RunningTask {
    context::task().expect(
        "a timeout unwinds a task, and threads of the blocking pool run none: call it from inside `fibra::run` \
         or a spawned task, or give the operation a timeout of its own",
    )
}
