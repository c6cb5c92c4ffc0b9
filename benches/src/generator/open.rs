//! The open loop: requests leave when they are due, whatever the server does.

use super::board::{Board, Fault};
use super::link::Link;
use super::pace::Pace;
use super::survive;
use std::time::{Duration, Instant};

/// Time between two looks whether the run is over, once the planned end has come.
const LOOK: Duration = Duration::from_millis(10);

/// Sends what is due, at most `pipeline` requests at a time, until the run is over, which is planned for `end`;
/// what is late is not skipped.
pub(crate) fn drive(
    link: &mut dyn Link,
    mut pace: Pace,
    pipeline: usize,
    churn: bool,
    end: Instant,
    board: &Board,
) -> Result<(), Fault> {
    let (mut dues, mut outcome) = (Vec::with_capacity(pipeline), Ok(()));
    while outcome.is_ok() && !board.is_over() {
        pace.take_due(Instant::now(), pipeline, &mut dues);
        if dues.is_empty() {
            fibra::sleep_until(pace.next_due().min(end.max(Instant::now()) + LOOK));
        } else {
            outcome = survive(link.exchange(&mut dues), churn, board);
            if outcome.is_ok() && !dues.is_empty() {
                // The fault was survived; no reply comes to these.
                board.lose(&mut dues);
            }
        }
    }
    board.leave(&outcome, dues, pace);
    outcome
}
