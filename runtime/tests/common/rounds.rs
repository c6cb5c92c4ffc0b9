//! The rounds of a race, as many as there is time for.

use std::time::{Duration, Instant};

/// How long rounds are played: where each of them waits for its turn on a busy machine, fewer will do.
pub(crate) const ENOUGH: Duration = Duration::from_secs(20);

/// From 1 to `most`, or to as many as there is time for.
pub(crate) fn rounds(most: usize) -> impl Iterator<Item = usize> {
    let begin = Instant::now();
    (1..=most).take_while(move |_| begin.elapsed() < ENOUGH)
}
