//! flume's channels, awaited by tasks of tokio.

use flume::{Receiver, Sender, bounded, unbounded};

use super::super::question::{Question, SLOTS};
use super::Way;
use super::pairs::{self, Channel};

struct Bounded<const SLOTS: usize>;

struct Unbounded;

pub(super) fn way(question: Question) -> Option<Way> {
    Some(match question {
        Question::PingPong(_) => pairs::ping_pong::<Bounded<1>>,
        Question::Rendezvous(_) => pairs::ping_pong::<Bounded<0>>,
        Question::Bounded(_) => pairs::stream::<Bounded<SLOTS>>,
        Question::Unbounded(_) => pairs::stream::<Unbounded>,
        _ => return None,
    })
}

impl<const SLOTS: usize> Channel<u64> for Bounded<SLOTS> {
    type Sender = Sender<u64>;
    type Receiver = Receiver<u64>;

    fn open() -> (Sender<u64>, Receiver<u64>) {
        bounded(SLOTS)
    }

    async fn send(sender: &Sender<u64>, message: u64) {
        sender.send_async(message).await.expect("the receiver is there");
    }

    async fn receive(receiver: &mut Receiver<u64>) -> u64 {
        receiver.recv_async().await.expect("the sender is there")
    }
}

impl Channel<u64> for Unbounded {
    type Sender = Sender<u64>;
    type Receiver = Receiver<u64>;

    fn open() -> (Sender<u64>, Receiver<u64>) {
        unbounded()
    }

    async fn send(sender: &Sender<u64>, message: u64) {
        sender.send(message).expect("the receiver is there");
    }

    async fn receive(receiver: &mut Receiver<u64>) -> u64 {
        receiver.recv_async().await.expect("the sender is there")
    }
}
