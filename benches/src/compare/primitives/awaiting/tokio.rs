//! tokio. It has no channel without slots and no condition variable: a mutex and a `Notify` for each side stand for the latter.

use std::hint::black_box;

use tokio::sync::{
    Barrier, Mutex, MutexGuard, Notify, OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore,
    SemaphorePermit, broadcast, mpsc, oneshot, watch,
};

use super::super::question::{Question, SLOTS};
use super::Way;
use super::alone::{self, Deed};
use super::crowd::{Lock, Meeting, Permits, ReadLock};
use super::library::{Library, locks};
use super::pairs::{self, Channel, Choice, Oneshot};
use super::spread::{self, Spread};
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

    type OnceCell = OnceCell<u64>;
    type Barrier = Barrier;

    fn own_way(question: Question) -> Option<Way> {
        Some(match question {
            Question::Condition(_) => pairs::take_turns::<Turns>,
            Question::NotifyFree => alone::repeat::<Notify>,
            Question::BroadcastFree => spread::pass_freely::<Broadcast>,
            Question::Broadcast => spread::send_to_all::<Self, Broadcast>,
            Question::WatchFree => spread::pass_freely::<Watch>,
            Question::Watch => spread::send_to_all::<Self, Watch>,
            _ => return None,
        })
    }
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

struct Broadcast;

struct Watch;

impl Spread for Broadcast {
    type Sender = broadcast::Sender<u64>;
    type Receiver = broadcast::Receiver<u64>;

    const BATCH: u64 = SLOTS as u64;

    fn open() -> broadcast::Sender<u64> {
        broadcast::Sender::new(SLOTS)
    }

    fn subscribe(sender: &broadcast::Sender<u64>) -> broadcast::Receiver<u64> {
        sender.subscribe()
    }

    fn send(sender: &broadcast::Sender<u64>, message: u64) {
        sender.send(message).expect("the receivers are there");
    }

    async fn receive(receiver: &mut broadcast::Receiver<u64>) -> u64 {
        receiver.recv().await.expect("the sender waits for all")
    }
}

impl Spread for Watch {
    type Sender = watch::Sender<u64>;
    type Receiver = watch::Receiver<u64>;

    const BATCH: u64 = 1;

    fn open() -> watch::Sender<u64> {
        watch::Sender::new(0)
    }

    fn subscribe(sender: &watch::Sender<u64>) -> watch::Receiver<u64> {
        sender.subscribe()
    }

    fn send(sender: &watch::Sender<u64>, message: u64) {
        sender.send(message).expect("the receivers are there");
    }

    async fn receive(receiver: &mut watch::Receiver<u64>) -> u64 {
        receiver.changed().await.expect("the sender waits for all");
        *receiver.borrow_and_update()
    }
}

/// Nothing is kept for one who waits later, as with a condition variable.
impl Deed for Notify {
    fn new() -> Self {
        Notify::new()
    }

    async fn run(&self) {
        self.notify_waiters();
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
