//! Tasks that wait by `await`, which cannot borrow: no scopes.

use std::future::ready;
use std::hint::black_box;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::compare::awaiting::asked::Host;
use crate::compare::awaiting::{Enter, Tasks};
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::worlds::tokio::{Tokio, current, multi};

use super::FAR;
use super::question::{BRANCHES, Question};

/// tokio, with what it alone among these has.
struct WithTimeouts(Runtime);

pub(super) fn start_current(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(WithTimeouts(current()))
}

pub(super) fn start_multi(workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(WithTimeouts(multi(workers)))
}

impl Rival<Question> for WithTimeouts {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        match question {
            Question::Timeout => self.0.ask(time_out(operations)).into(),
            Question::Skynet(leaves) => self.0.ask(climb::<Tokio>(leaves, operations)).into(),
            Question::Scope | Question::Loop => unreachable!("not asked"),
        }
    }
}

impl<T: Tasks, E: Enter> Rival<Question> for Host<T, E> {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let Question::Skynet(leaves) = question else {
            unreachable!("the table of entrants lets it enter for no other");
        };
        self.entrance.ask(climb::<T>(leaves, operations)).into()
    }
}

async fn time_out(operations: u64) -> Duration {
    let begin = Instant::now();
    for _ in 0..operations {
        _ = black_box(timeout(FAR, ready(black_box(0))).await);
    }
    begin.elapsed()
}

async fn climb<T: Tasks>(leaves: u64, operations: u64) -> Duration {
    let begin = Instant::now();
    for _ in 0..operations {
        assert_eq!(skynet::<T>(0, leaves).await, leaves * (leaves - 1) / 2);
    }
    begin.elapsed()
}

fn skynet<T: Tasks>(first: u64, leaves: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if leaves == 1 {
            return first;
        }
        let each = leaves / BRANCHES;
        let children: [_; BRANCHES as usize] =
            std::array::from_fn(|child| T::spawn(skynet::<T>(first + child as u64 * each, each)));
        let mut sum = 0;
        for child in children {
            sum += T::join(child).await;
        }
        sum
    })
}
