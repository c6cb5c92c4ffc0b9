//! flume's channels, awaited by tasks of tokio.

use flume::{Receiver, Sender, bounded, unbounded};

use super::asked::library::{self, Library, Thing};
use super::asked::pairs::Channel;
use crate::compare::primitives::question::SLOTS;
use crate::compare::worlds::tokio::Tokio;

pub(in crate::compare) struct Flume;

impl Library<Tokio> for Flume {
    const THINGS: &'static [Thing] = &[
        library::one_slot::<Bounded<1>>,
        library::no_slot::<Bounded<0>>,
        library::slots::<Bounded<SLOTS>>,
        library::unbounded::<Unbounded>,
    ];
}

struct Bounded<const SLOTS: usize>;

struct Unbounded;

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
