//! How often a worker checks its sources, and when it sends tasks elsewhere.
//! `tests/scaling_model.rs` simulates these values, too.

#![forbid(unsafe_code)]

use std::time::Duration;

/// Picks between two ticks.
///
/// A tick checks all that is not a local queue: other threads' spawns, the driver, the timers. So
/// tasks that are always ready starve none of them.
pub(crate) const TICK_PICKS: u32 = 128;

/// While tasks wait that the driver or a timer woke, one pick in so many starts a task.
pub(crate) const STARTS: u32 = 8;

/// How long a watching worker parks at first, and at the most.
pub(crate) const WATCH_FIRST: Duration = Duration::from_micros(50);
pub(crate) const WATCH_MOST: Duration = Duration::from_micros(250);

/// How many more tasks than another worker a worker may have before it sends an unstarted task
/// there.
pub(crate) const MARGIN_DETACHED: usize = 1;
/// The margin for a task whose handle is kept, or whose scope waits: it may be joined in a moment.
pub(crate) const MARGIN_HELD: usize = 4;
