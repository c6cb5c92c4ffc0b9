//! The closed loop: the next batch follows the replies to the last.

use super::board::{Board, Fault};
use super::link::Link;
use super::survive;
use std::time::Instant;

/// Keeps `pipeline` requests on their way until the run is over.
pub(crate) fn drive(link: &mut dyn Link, pipeline: usize, churn: bool, board: &Board) -> Result<(), Fault> {
    let mut dues = vec![Instant::now(); pipeline];
    while !board.is_over() {
        dues.fill(Instant::now());
        survive(link.exchange(&dues), churn, board)?;
    }
    Ok(())
}
