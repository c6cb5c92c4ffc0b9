//! Readings of the clock: the one place that asks the system for the time.
//!
//! `ci/clock.sh` checks that no other library file reads a clock.

#![forbid(unsafe_code)]

use std::time::Instant;

/// Returns the time that tasks, timers and deadlines live by.
///
/// A simulation may replace it by a virtual one.
#[inline(always)]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns true once there is a deadline, and it has come.
#[inline]
pub fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= now())
}

/// Returns the time of the machine, for measurements of what the machine does.
///
/// It is never virtual.
#[inline(always)]
pub fn machine() -> Instant {
    Instant::now()
}
