//! Many tasks that wait for one task, which wakes them and waits until it hears of it; or for each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::asked::crowd::lead;
use super::asked::{Asked, task};
use super::{Job, Tasks};
use crate::compare::primitives::question::{CROWD as TASKS, Call, Question, SIDE};
use crate::compare::question::Answer;

/// Where on a board the crowd waits, and where the task that wakes it.
const CROWD: usize = 0;
const LEADER: usize = 1;

/// The mark on the board at the end.
const OVER: u64 = u64::MAX;

/// A number behind a mutex, with two condition variables.
pub(super) trait Board: Send + Sync + 'static {
    fn new() -> Self;

    /// Waits at one of the conditions until `look` says something else; then notifies the other condition as
    /// `look` says.
    fn pass(&self, at: usize, look: impl FnMut(&mut u64) -> Then);
}

/// The decision after a look at a board.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Wait,
    Go,
    NotifyOne,
    NotifyAll,
    /// All that wait where this one would.
    NotifyHere,
}

/// The operations of a board.
pub(super) fn notified<T: Tasks, B: Board>(question: Question, n: u64) -> Option<Asked> {
    Some(match question {
        Question::Wake(Call::NotifyOne) => task(notify_one::<T, B>(TASKS, n)),
        Question::Wake(Call::NotifyAll) => task(notify_all::<T, B>(TASKS, n)),
        Question::Slot => task(fill_and_empty::<T, B>(SIDE, n)),
        _ => return None,
    })
}

/// A place is filled, and one of the waiters is notified and empties it, until that was done `operations`
/// times.
fn notify_one<T: Tasks, B: Board>(tasks: u64, operations: u64) -> impl Job<Answer> {
    let board = Arc::new(B::new());
    let crowds = Arc::clone(&board);
    let empty = |board: &B| {
        let mut goes_on = true;
        board.pass(CROWD, |place| match *place {
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
    let asking = move || {
        let board = Arc::clone(&crowds);
        move || {
            let mut share = 0;
            while empty(&board) {
                share += 1;
            }
            share
        }
    };
    let fill = move |with, then| {
        board.pass(LEADER, |place| match *place {
            0 => {
                *place = with;
                then
            }
            _ => Then::Wait,
        });
    };
    lead::<T, _>(tasks, operations, asking, move || {
        (0..operations).for_each(|_| fill(1, Then::NotifyOne));
        fill(OVER, Then::NotifyAll);
    })
}

/// All tasks are notified of each round, and the last of them notifies the task that begins the next; what
/// one of them has seen is an operation. All tasks get equal shares.
fn notify_all<T: Tasks, B: Board>(tasks: u64, operations: u64) -> impl Job<Duration> {
    // The number of the round stands above that of the tasks that have not seen it.
    const ROUND: u64 = 1 << 32;
    let rounds = operations.div_ceil(tasks);
    let board = Arc::new(B::new());
    let crowds = Arc::clone(&board);
    let asking = move || {
        let board = Arc::clone(&crowds);
        move || {
            for round in 1..=rounds {
                board.pass(CROWD, |state| {
                    if *state / ROUND != round {
                        return Then::Wait;
                    }
                    *state -= 1;
                    if *state % ROUND == 0 { Then::NotifyOne } else { Then::Go }
                });
            }
            rounds
        }
    };
    let all = lead::<T, _>(tasks, operations, asking, move || {
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
    move || all().elapsed
}

/// So many tasks fill a slot and as many empty it, until `operations` numbers went through. All of them wait at
/// one condition, and are notified of each change.
fn fill_and_empty<T: Tasks, B: Board>(side: u64, operations: u64) -> impl Job<Answer> {
    let (board, spawned) = (Arc::new(B::new()), AtomicU64::new(0));
    // The number on the board counts the changes: it is odd while the slot is full.
    let asking = move || {
        let (board, parity) = (Arc::clone(&board), spawned.fetch_add(1, Relaxed) / side);
        move || {
            for share in 0.. {
                let mut is_over = false;
                board.pass(CROWD, |changes| {
                    is_over = *changes == 2 * operations;
                    match *changes % 2 == parity {
                        _ if is_over => Then::Go,
                        false => Then::Wait,
                        true => {
                            *changes += 1;
                            Then::NotifyHere
                        }
                    }
                });
                if is_over {
                    return share;
                }
            }
            unreachable!("there is an end")
        }
    };
    lead::<T, _>(2 * side, operations, asking, || ())
}
