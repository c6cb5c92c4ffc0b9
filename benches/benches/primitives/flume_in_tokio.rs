//! flume's channels, awaited by tasks of tokio.

use std::time::Instant;

use flume::bounded;

use super::question::{Place, Question, SLOTS};
use super::tokio::{Asked, Tokio, Way, current, pair};
use crate::comparison::Rival;

pub(super) fn start(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Tokio { together: current(), way })
}

pub(super) fn enters(question: Question, workers: usize) -> bool {
    (workers == 1 || question.place() == Place::Apart) && way(question).is_some()
}

fn way(question: Question) -> Option<Way> {
    Some(match question {
        Question::PingPong(_) => |n| ping_pong(1, n),
        Question::Rendezvous(_) => |n| ping_pong(0, n),
        Question::Bounded(_) => stream,
        _ => return None,
    })
}

fn ping_pong(slots: usize, operations: u64) -> Asked {
    let (there, arrived) = bounded(slots);
    let (back, returned) = bounded(slots);
    let asking = async move {
        let begin = Instant::now();
        for number in 0..operations {
            there.send_async(number).await.expect("the receiver is there");
            assert_eq!(returned.recv_async().await, Ok(number));
        }
        begin.elapsed()
    };
    pair(asking, async move {
        for _ in 0..operations {
            let number = arrived.recv_async().await.expect("the sender is there");
            back.send_async(number).await.expect("the receiver is there");
        }
    })
}

fn stream(operations: u64) -> Asked {
    let (sender, receiver) = bounded(SLOTS);
    let consuming = async move {
        let begin = Instant::now();
        for number in 0..operations {
            assert_eq!(receiver.recv_async().await, Ok(number));
        }
        begin.elapsed()
    };
    pair(consuming, async move {
        for number in 0..operations {
            sender.send_async(number).await.expect("the receiver is there");
        }
    })
}
