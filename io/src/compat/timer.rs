//! The timer of hyper, on the timers of this library.

#![forbid(unsafe_code)]

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use fibra_runtime::Handle;
use fibra_runtime::clock;
use fibra_runtime::time;

use super::clock::{Clock, Due};

/// Gives hyper its time-outs, by the timers of a runtime of ours.
///
/// One task of that runtime serves all clones of a timer. A time-out never comes early. Once the runtime begins to end none comes
/// any more: where a shield or a destructor sleeps, that is for [`sleep`](fibra_runtime::sleep).
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
/// use fibra_io::compat::{Sleep, Timer};
/// use hyper::rt::Timer as _;
///
/// # let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
/// # runtime.run(|| {
/// let begin = Instant::now();
/// fibra_runtime::block_on(Timer::new().sleep(Duration::from_millis(2)));
/// assert!(begin.elapsed() >= Duration::from_millis(2));
/// let mut sleep = Timer::on(fibra_runtime::Handle::current()).sleep_until(begin);
/// assert!(sleep.as_mut().downcast_mut_pin::<Sleep>().is_some());
/// fibra_runtime::block_on(sleep);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Timer {
    clock: Arc<Clock>,
}

impl Timer {
    /// Makes one of the runtime of the caller.
    ///
    /// # Panics
    /// Off a runtime; there is [`on`](Timer::on) for that.
    #[track_caller]
    pub fn new() -> Timer {
        Timer::on(Handle::current())
    }

    /// Makes one of that runtime.
    pub fn on(runtime: Handle) -> Timer {
        Timer { clock: Arc::new(Clock::new(runtime)) }
    }

    fn at(&self, deadline: Option<Instant>) -> Sleep {
        Sleep { clock: Arc::clone(&self.clock), deadline, number: self.clock.number(), waker: None }
    }
}

impl Default for Timer {
    fn default() -> Timer {
        Timer::new()
    }
}

impl hyper::rt::Timer for Timer {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        // Beyond what the clock can tell it is for ever.
        Box::pin(self.at(time::deadline(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(self.at(Some(deadline)))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn hyper::rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(sleep) => sleep.get_mut().reset(deadline),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").finish_non_exhaustive()
    }
}

/// A future that is ready at a point in time; made by a [`Timer`].
pub struct Sleep {
    clock: Arc<Clock>,
    /// None: never.
    deadline: Option<Instant>,
    number: u64,
    /// Kept where there is no time to enter it for.
    waker: Option<Waker>,
}

impl Sleep {
    fn due(&self) -> Option<Due> {
        Some((self.deadline?, self.number))
    }

    fn reset(&mut self, deadline: Instant) {
        let waker = self.due().and_then(|due| self.clock.remove(due)).or_else(|| self.waker.take());
        self.deadline = Some(deadline);
        if let Some(waker) = waker {
            self.clock.enter((deadline, self.number), waker);
        }
    }
}

impl hyper::rt::Sleep for Sleep {}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        match self.due() {
            Some((deadline, _)) if deadline <= clock::now() => return Poll::Ready(()),
            Some(due) => self.clock.enter(due, waker),
            None => self.waker = Some(waker),
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        drop(self.due().and_then(|due| self.clock.remove(due)));
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
