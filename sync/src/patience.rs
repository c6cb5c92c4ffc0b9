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
