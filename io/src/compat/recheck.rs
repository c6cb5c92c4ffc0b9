//! A second look at a wait that nobody may end: the system tells no poller that a full Unix socket was shut down.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use fibra_runtime::Handle;

use super::clock::{Alarm, Clock};
use crate::op::RECHECK;

/// Wakes now and then who waits to write, by a timer of a runtime.
pub(super) struct Recheck {
    /// Where it was made, for where there is no other.
    origin: Option<Handle>,
    /// Made at the first wait.
    timer: Option<Timer>,
}

struct Timer {
    clock: Arc<Clock>,
    alarm: Arc<Alarm>,
    /// Somebody waits.
    is_set: bool,
}

impl Recheck {
    pub(super) fn new() -> Recheck {
        Recheck { origin: Handle::try_current(), timer: None }
    }

    /// Leaves the waker of one who goes on waiting. Where no runtime is known, there is no second look.
    pub(super) fn set(&mut self, waker: &Waker) {
        if self.timer.as_ref().is_none_or(|timer| timer.clock.has_ended()) {
            self.timer = Handle::try_current().or_else(|| self.origin.clone()).map(Timer::of);
        }
        let Some(timer) = &mut self.timer else { return };
        if !timer.is_set || timer.is_due() {
            timer.clock.reset(&timer.alarm, Instant::now() + RECHECK);
            timer.is_set = true;
        }
        timer.clock.arm(&timer.alarm, waker);
    }

    /// True if it is time to look.
    pub(super) fn is_due(&self) -> bool {
        self.timer.as_ref().is_some_and(|timer| timer.is_set && timer.is_due())
    }

    /// Nobody waits any more.
    pub(super) fn end(&mut self) {
        if let Some(timer) = self.timer.as_mut().filter(|timer| timer.is_set) {
            timer.is_set = false;
            timer.clock.forget(&timer.alarm);
        }
    }
}

impl Timer {
    fn of(runtime: Handle) -> Timer {
        Timer { clock: Arc::new(Clock::new(runtime)), alarm: Arc::new(Alarm::new(None)), is_set: false }
    }

    fn is_due(&self) -> bool {
        self.alarm.deadline().is_some_and(|deadline| deadline <= Instant::now())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.clock.forget(&self.alarm);
    }
}
