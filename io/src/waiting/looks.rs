//! Waits for states without an event: polls them, with growing pauses.
//!
//! A thread of the blocking pool could wait instead, but could not be called back. A cancel, the end
//! of a runtime and other closures would then wait for a state that may never come.

#![forbid(unsafe_code)]

use std::io;
use std::time::{Duration, Instant};

use fibra_runtime::clock;
use fibra_runtime::sleep_until;

use crate::waiting::cancel::check_may_wait;

/// The pause between the first two looks. Each later pause doubles, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Pauses and looks until there is something. Returns `None` once the deadline is reached.
///
/// The caller has looked before.
pub(crate) fn look_until<T>(
    deadline: Option<Instant>,
    mut look: impl FnMut() -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let mut pause = FIRST_PAUSE;
    loop {
        let now = clock::now();
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Ok(None);
        }
        check_may_wait()?;
        let next = now + pause;
        sleep_until(deadline.map_or(next, |deadline| deadline.min(next)));
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}
