//! What things cost, in nanoseconds of virtual time.
//!
//! The order of magnitude of a large server: what one processor does alone is what was measured here, what lies between
//! processors is put at the upper end of what such machines show.

use std::time::Duration;

use crate::tuning;

/// To pick the next task, to switch to it and back.
pub(crate) const PICK: u64 = 20;
/// To make a task and queue it, fence included.
pub(crate) const SPAWN: u64 = 60;
/// To bring a cache line over from another processor.
pub(crate) const LINE: u64 = 110;
/// To touch a line that is here already.
pub(crate) const HIT: u64 = 2;
/// To move one stolen task.
pub(crate) const MOVE: u64 = 5;
/// To step over one entry of the list of the parked, with its lock held.
pub(crate) const ENTRY: u64 = 1;
/// A call that asks the system for events and does not sleep.
pub(crate) const POLL: u64 = 400;
/// A call that sleeps, on its way in.
pub(crate) const SLEEP: u64 = 1_000;
/// The call that wakes a sleeping thread, for the caller.
pub(crate) const WAKE: u64 = 2_000;
/// From that call's end, or from the end of a timeout, until the sleeper runs.
pub(crate) const RISE: u64 = 5_000;
/// How late the system ends a timeout at the most: the default slack of timers.
pub(crate) const SLACK: u64 = 50_000;

/// The library's own, in this model's time.
pub(crate) const WATCH_FIRST: u64 = tuning::WATCH_FIRST.as_nanos() as u64;
pub(crate) const WATCH_MOST: u64 = tuning::WATCH_MOST.as_nanos() as u64;

pub(crate) const MICRO: u64 = 1_000;
pub(crate) const MILLI: u64 = 1_000_000;

/// A time of the simulation, for the files that speak of `Duration`.
pub(crate) fn duration(nanoseconds: u64) -> Duration {
    Duration::from_nanos(nanoseconds)
}
