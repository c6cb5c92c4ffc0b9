//! Models have no time.

use std::time::{Duration, Instant};

pub(crate) fn deadline(_timeout: Duration) -> Option<Instant> {
    unreachable!("no model waits for a time")
}
