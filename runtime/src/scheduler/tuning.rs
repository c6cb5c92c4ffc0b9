//! How often a worker looks, and when it sends tasks elsewhere. The simulation of `tests/scaling_model.rs` has these, too.

#![forbid(unsafe_code)]

use std::time::Duration;

/// After so many picks the worker looks at everything that is not a local queue: other threads' spawns, the driver,
/// the timers. So none of them starves beside tasks that are always ready.
pub(crate) const TURN: u32 = 128;

/// While others wait that the driver or a timer has woken, one pick in so many starts a task.
pub(crate) const STARTS: u32 = 8;

/// How long a watching worker parks at first, and at the most.
pub(crate) const WATCH_FIRST: Duration = Duration::from_micros(50);
pub(crate) const WATCH_MOST: Duration = Duration::from_micros(250);

/// How many more tasks than another worker one may have before it sends an un-started task there.
pub(crate) const MARGIN_DETACHED: usize = 1;
/// The same for a task whose handle somebody keeps, or whose scope waits: it may well be joined in a moment.
pub(crate) const MARGIN_HELD: usize = 4;
