//! When a lock helps a woken waiter that is late.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

/// How long a woken waiter may be bypassed before the lock is handed over to it, and may be on its way before an unlock
/// wakes another.
const PATIENCE: Duration = Duration::from_millis(1);

/// Returns true if a waiter that is late since then is to be helped now.
pub(crate) fn is_over(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) >= PATIENCE
}

/// How many unlocks at most pass over a woken waiter between two looks at its time.
pub(crate) const PASSES_PER_LOOK: u32 = 64;

/// Returns true if an unlock looks at the time of a woken waiter, with the count of unlocks since the wake.
///
/// A look reads the clock, which takes longer than an unlock. So the first unlock looks, the second, the fourth and so on,
/// and every 64th.
pub(crate) fn is_look(passes: u32) -> bool {
    passes.is_power_of_two() || passes.is_multiple_of(PASSES_PER_LOOK)
}
