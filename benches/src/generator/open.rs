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
    let mut dues = Vec::with_capacity(pipeline);
    while !board.is_over() {
        pace.take_due(Instant::now(), pipeline, &mut dues);
        if !dues.is_empty() {
            survive(link.exchange(&dues), churn, board)?;
            continue;
        }
        fibra::sleep_until(pace.next_due().min(end.max(Instant::now()) + LOOK));
    }
    give_up_on(pace, board);
    Ok(())
}

/// Takes down what was due and did not leave: it is as late as it has become by now.
pub(crate) fn give_up_on(mut pace: Pace, board: &Board) {
    let now = Instant::now();
    pace.rest(now).for_each(|due| board.record_unsent(due, now));
}
