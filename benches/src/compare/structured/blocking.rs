//! Tasks that block, in a tree.

use crate::compare::blocking::asked::Host;
use crate::compare::blocking::{Enter, Tasks};
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;

use super::question::{BRANCHES, Question};
use super::timed;

impl<T: Tasks, E: Enter> Rival<Question> for Host<T, E> {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let Question::Skynet(leaves) = question else {
            unreachable!("the table of entrants lets it enter for no other");
        };
        self.entrance.ask(move || climb::<T>(leaves, operations)).into()
    }
}

/// Sums the tree `operations` times, and returns how long that takes.
pub(super) fn climb<T: Tasks>(leaves: u64, operations: u64) -> std::time::Duration {
    timed(operations, || assert_eq!(skynet::<T>(0, leaves), leaves * (leaves - 1) / 2))
}

/// The sum of `leaves` numbers that begin with `first`.
fn skynet<T: Tasks>(first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return first;
    }
    let each = leaves / BRANCHES;
    let child = |child| move || skynet::<T>(first + child as u64 * each, each);
    let children: [_; BRANCHES as usize] = std::array::from_fn(|number| T::spawn(child(number)));
    children.into_iter().map(T::join).sum()
}
