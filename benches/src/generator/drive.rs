//! The loops of a connection: the next batch follows the replies to the last, or requests leave when they are
//! due.

use super::board::Board;
use super::conductor::Plan;
use super::link::Link;
use super::pace::Pace;
use crate::wire::Order;
use std::io;
use std::time::{Duration, Instant};

/// Pause between a failed connection and the next one, where every request has its own.
const PAUSE: Duration = Duration::from_millis(10);

/// Time between two looks whether the run is over, once the planned end has come.
const LOOK: Duration = Duration::from_millis(10);

/// Exchanges batches over connection `id` until the run is over. Under a rate, requests that are late are not
/// skipped.
pub(crate) fn drive(
    link: &mut dyn Link,
    id: usize,
    order: &Order,
    plan: Plan,
    board: &Board,
    sleep_until: fn(Instant),
) -> io::Result<()> {
    let mut pace = order.rate.map(|rate| Pace::new(rate, id, order.connections, plan.start));
    let (mut dues, mut outcome) = (Vec::with_capacity(order.pipeline), Ok(()));
    sleep_until(plan.start);
    while outcome.is_ok() && !board.is_over() {
        let now = Instant::now();
        match &mut pace {
            None => {
                dues.clear();
                dues.resize(order.pipeline, now);
            }
            Some(pace) => pace.take_due(now, order.pipeline, &mut dues),
        }
        if let Some(pace) = pace.as_ref().filter(|_| dues.is_empty()) {
            sleep_until(pace.next_due().min(plan.end.max(now) + LOOK));
            continue;
        }
        outcome = match link.exchange(&mut dues) {
            // With a connection for each request, a fault ends that request alone.
            Err(fault) if order.churn && !board.is_over() => {
                board.count(&fault);
                sleep_until(Instant::now() + PAUSE);
                Ok(())
            }
            outcome => outcome,
        };
        if outcome.is_ok() && pace.is_some() {
            // No reply comes to what a survived fault has left.
            board.lose(&mut dues);
        }
    }
    if let Some(pace) = pace {
        board.leave(&outcome, dues, pace);
    }
    outcome
}
