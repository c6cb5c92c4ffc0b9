//! The closed loop: the next batch follows the replies to the last.

use super::board::{Board, Fault};
use super::link::Link;
use super::survive;
use std::time::Instant;

/// Keeps `pipeline` requests on their way until the run is over.
pub(crate) fn drive(link: &mut dyn Link, pipeline: usize, churn: bool, board: &Board) -> Result<(), Fault> {
    let mut dues = Vec::with_capacity(pipeline);
    while !board.is_over() {
        dues.clear();
        dues.resize(pipeline, Instant::now());
        survive(link.exchange(&mut dues), churn, board)?;
    }
    Ok(())
}
