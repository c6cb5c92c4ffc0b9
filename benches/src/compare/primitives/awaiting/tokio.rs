//! tokio. It has no channel without slots and no condition variable: a mutex and a `Notify` for each side stand for the latter.

use tokio::sync::{
    Mutex, MutexGuard, Notify, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit, mpsc,
    oneshot,
};

use super::super::question::SLOTS;
use super::Way;
use super::crowd::{Lock, Permits, ReadLock};
use super::library::{Library, locks};
use super::pairs::{self, Channel, Choice, Oneshot};
use crate::compare::worlds::tokio::Tokio;

pub(super) struct Bounded<const SLOTS: usize>;

pub(super) struct Unbounded;

pub(super) struct Once;

/// Whose turn it is, and where each of the two waits for its own: who passes the turn must not take its own notification.
#[derive(Default)]
struct Turns {
    turn: Mutex<bool>,
    passed: [Notify; 2],
}

impl Library for Tokio {
    type Mutex = Mutex<u64>;
    type RwLock = RwLock<u64>;
    type Semaphore = Semaphore;
    type One = Bounded<1>;
    type Slots = Bounded<SLOTS>;
    type Unbounded = Unbounded;
    type Once = Once;

    const CONDITION: Option<Way> = Some(pairs::take_turns::<Turns>);
}

locks!();

impl Permits for Semaphore {
    type Permit<'a> = SemaphorePermit<'a>;

    fn new(permits: usize) -> Self {
        Semaphore::new(permits)
    }

    async fn acquire(&self) -> SemaphorePermit<'_> {
        Semaphore::acquire(self).await.expect("nobody closes it")
    }
}

impl<M: Send + 'static, const SLOTS: usize> Channel<M> for Bounded<SLOTS> {
    type Sender = mpsc::Sender<M>;
    type Receiver = mpsc::Receiver<M>;

    fn open() -> (mpsc::Sender<M>, mpsc::Receiver<M>) {
        mpsc::channel(SLOTS)
    }

    async fn send(sender: &mpsc::Sender<M>, message: M) {
        assert!(sender.send(message).await.is_ok(), "the receiver is there");
    }

    async fn receive(receiver: &mut mpsc::Receiver<M>) -> M {
        receiver.recv().await.expect("the sender is there")
    }
}

impl<const SLOTS: usize> Choice for Bounded<SLOTS> {
    async fn receive_either(one: &mut mpsc::Receiver<u64>, other: &mut mpsc::Receiver<u64>) -> u64 {
        let message = tokio::select! {
            message = one.recv() => message,
            message = other.recv() => message,
        };
        message.expect("the senders are there")
    }
}

impl Channel<u64> for Unbounded {
    type Sender = mpsc::UnboundedSender<u64>;
    type Receiver = mpsc::UnboundedReceiver<u64>;

    fn open() -> (mpsc::UnboundedSender<u64>, mpsc::UnboundedReceiver<u64>) {
        mpsc::unbounded_channel()
    }

    async fn send(sender: &mpsc::UnboundedSender<u64>, message: u64) {
        sender.send(message).expect("the receiver is there");
    }

    async fn receive(receiver: &mut mpsc::UnboundedReceiver<u64>) -> u64 {
        receiver.recv().await.expect("the sender is there")
    }
}

impl Oneshot for Once {
    type Sender = oneshot::Sender<u64>;
    type Receiver = oneshot::Receiver<u64>;

    fn open() -> (oneshot::Sender<u64>, oneshot::Receiver<u64>) {
        oneshot::channel()
    }

    fn send(sender: oneshot::Sender<u64>, message: u64) {
        sender.send(message).expect("the receiver is there");
    }

    async fn receive(receiver: oneshot::Receiver<u64>) -> u64 {
        receiver.await.expect("the sender replies")
    }
}

impl pairs::Turns for Turns {
    async fn pass(&self, mine: bool) {
        let mut turn = self.turn.lock().await;
        while *turn != mine {
            drop(turn);
            self.passed[usize::from(mine)].notified().await;
            turn = self.turn.lock().await;
        }
        *turn = !mine;
        self.passed[usize::from(!mine)].notify_one();
    }
}
