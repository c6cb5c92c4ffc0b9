//! Many tasks that wait for one, who wakes them and waits until it hears of it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::crowd::lead;
use super::pairs::Event;
use crate::compare::question::Answer;
use crate::compare::worlds::Blocking;

/// Where on a board the crowd waits, and where the one who wakes it.
const CROWD: usize = 0;
const LEADER: usize = 1;

/// What is on the board when all is over.
const OVER: u64 = u64::MAX;

/// A number behind a mutex, with two condition variables.
pub(super) trait Board: Send + Sync + 'static {
    fn new() -> Self;

    /// Waits at one of the conditions until `look` says something else; of the other one it notifies whom that says.
    fn pass(&self, at: usize, look: impl FnMut(&mut u64) -> Then);
}

/// What follows from a look at a board.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Wait,
    Go,
    NotifyOne,
    NotifyAll,
}

/// An event is set until it has been waited for `operations` times; who was woken sets another one.
pub(super) fn set<T: Blocking, E: Event>(tasks: u64, operations: u64) -> Answer {
    let (asked, answered) = (Arc::new(E::new()), Arc::new(E::new()));
    let is_over = Arc::new(AtomicBool::new(false));
    let crowd = (Arc::clone(&asked), Arc::clone(&answered), Arc::clone(&is_over));
    let served = move || {
        let (asked, answered, is_over) = &crowd;
        asked.wait();
        // Relaxed: who has waited sees what was before.
        let goes_on = !is_over.load(Relaxed);
        if goes_on {
            answered.set()
        } else {
            asked.set()
        }
        goes_on
    };
    lead::<T>(tasks, operations, served, || {
        for _ in 0..operations {
            asked.set();
            answered.wait();
        }
        is_over.store(true, Relaxed);
        asked.set();
    })
}

/// A place is filled, and one of those who wait for that is notified and empties it, until that was done `operations` times.
pub(super) fn notify_one<T: Blocking, B: Board>(tasks: u64, operations: u64) -> Answer {
    let board = Arc::new(B::new());
    let crowds = Arc::clone(&board);
    let served = move || {
        let mut goes_on = true;
        crowds.pass(CROWD, |place| match *place {
            0 => Then::Wait,
            OVER => {
                goes_on = false;
                Then::Go
            }
            _ => {
                *place = 0;
                Then::NotifyOne
            }
        });
        goes_on
    };
    let fill = |with, then| {
        board.pass(LEADER, |place| match *place {
            0 => {
                *place = with;
                then
            }
            _ => Then::Wait,
        });
    };
    lead::<T>(tasks, operations, served, || {
        (0..operations).for_each(|_| fill(1, Then::NotifyOne));
        fill(OVER, Then::NotifyAll);
    })
}

/// All are notified of each round, and the last of them notifies the one who begins the next; what one of them has seen is an
/// operation. All get the same.
pub(super) fn notify_all<T: Blocking, B: Board>(tasks: u64, operations: u64) -> Duration {
    // The number of the round stands above that of those who have not seen it.
    const ROUND: u64 = 1 << 32;
    let rounds = operations.div_ceil(tasks);
    let board = Arc::new(B::new());
    let (crowds, seen) = (Arc::clone(&board), Cell::new(0));
    let served = move || {
        let round = seen.get() + 1;
        seen.set(round);
        if round > rounds {
            return false;
        }
        crowds.pass(CROWD, |state| {
            if *state / ROUND != round {
                return Then::Wait;
            }
            *state -= 1;
            if *state % ROUND == 0 { Then::NotifyOne } else { Then::Go }
        });
        true
    };
    let answer = lead::<T>(tasks, operations, served, || {
        for round in 1..=rounds {
            board.pass(LEADER, |state| {
                if *state % ROUND != 0 {
                    return Then::Wait;
                }
                *state = round * ROUND + tasks;
                Then::NotifyAll
            });
        }
    });
    answer.elapsed
}
