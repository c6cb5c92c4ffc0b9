//! tokio, whose tasks cannot borrow: no scopes.

use std::future::{Future, ready};
use std::hint::black_box;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::comparison::{Answer, Rival};

use super::question::{BRANCHES, LEAVES, Question};

const FAR: Duration = Duration::from_secs(3600);

pub(super) fn start_current(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Builder::new_current_thread().enable_time().build().expect("a runtime on this thread"))
}

pub(super) fn start_multi(workers: usize) -> Box<dyn Rival<Question>> {
    let runtime = Builder::new_multi_thread().worker_threads(workers).enable_time().build();
    Box::new(runtime.expect("threads for the workers"))
}

impl Rival<Question> for Runtime {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        // In a task, as with the others.
        let asked = self.spawn(answer(question, operations));
        self.block_on(asked).expect("no task panics").into()
    }
}

async fn answer(question: Question, operations: u64) -> Duration {
    let begin = Instant::now();
    for _ in 0..operations {
        match question {
            Question::Timeout => _ = black_box(timeout(FAR, ready(black_box(0))).await),
            Question::Skynet => assert_eq!(skynet(0, LEAVES).await, LEAVES * (LEAVES - 1) / 2),
            Question::Scope | Question::Loop => unreachable!("not asked"),
        }
    }
    begin.elapsed()
}

fn skynet(first: u64, leaves: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if leaves == 1 {
            return first;
        }
        let each = leaves / BRANCHES;
        let children: [_; BRANCHES as usize] =
            std::array::from_fn(|child| tokio::spawn(skynet(first + child as u64 * each, each)));
        let mut sum = 0;
        for child in children {
            sum += child.await.expect("no task panics");
        }
        sum
    })
}
