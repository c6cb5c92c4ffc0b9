//! The shares of many tasks in one primitive.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::compare::question::{Answer, Measure};

/// How often each task has to be served, in the mean, and how long all of it has to take, until the shares of
/// all tell anything. Threads take turns by time slices.
const TELLING: (u64, Duration) = (50, Duration::from_millis(40));

/// The answer of a crowd, with what the luckiest task got in proportion to the unluckiest, if that tells
/// anything.
pub(in crate::compare) fn shared(elapsed: Duration, shares: &[AtomicU64], operations: u64) -> Answer {
    let (each, at_least) = TELLING;
    let shares = shares.iter().map(|share| share.load(Relaxed));
    let spread = (operations >= each * shares.len() as u64 && elapsed >= at_least).then(|| {
        let (least, most) =
            shares.fold((u64::MAX, 0), |(least, most), share| (least.min(share), most.max(share)));
        // A task that got nothing counts as if it got it once.
        most as f64 / least.max(1) as f64
    });
    let shares = spread.map(|spread| (Measure::Shares, spread));
    Answer { figures: shares.into_iter().collect(), ..elapsed.into() }
}
