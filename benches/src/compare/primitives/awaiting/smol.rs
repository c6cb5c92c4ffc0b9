//! smol. It has no channel without slots, no condition variable and no oneshot: for that one a channel of one slot stands.

use std::hint::black_box;

use smol::channel::{Receiver, Sender, bounded, unbounded};
use smol::lock::{
    Barrier, Mutex, MutexGuard, OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore,
    SemaphoreGuard,
};

use super::super::question::{Question, SLOTS};
use super::Way;
use super::alone::{self, Deed};
use super::crowd::{Lock, Meeting, Permits, ReadLock};
use super::library::{Library, locks};
use super::pairs::{Channel, Choice, Oneshot};
use crate::compare::worlds::smol::Smol;

pub(super) struct Bounded<const SLOTS: usize>;

pub(super) struct Unbounded;

pub(super) struct Once;

impl Library for Smol {
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
        match question {
            Question::UpgradableFree => Some(alone::repeat::<RwLock<u64>>),
            _ => None,
        }
    }
}

locks!();

impl Deed for RwLock<u64> {
    fn new() -> Self {
        RwLock::new(0)
    }

    async fn run(&self) {
        drop(self.upgradable_read().await);
    }
}

impl Permits for Semaphore {
    type Permit<'a> = SemaphoreGuard<'a>;

    fn new(permits: usize) -> Self {
        Semaphore::new(permits)
    }

    fn acquire(&self) -> impl Future<Output = SemaphoreGuard<'_>> + Send {
        Semaphore::acquire(self)
    }
}

impl<M: Send + 'static, const SLOTS: usize> Channel<M> for Bounded<SLOTS> {
    type Sender = Sender<M>;
    type Receiver = Receiver<M>;

    fn open() -> (Sender<M>, Receiver<M>) {
        bounded(SLOTS)
    }

    async fn send(sender: &Sender<M>, message: M) {
        assert!(sender.send(message).await.is_ok(), "the receiver is there");
    }

    async fn receive(receiver: &mut Receiver<M>) -> M {
        receiver.recv().await.expect("the sender is there")
    }
}

impl<const SLOTS: usize> Choice for Bounded<SLOTS> {
    async fn receive_either(one: &mut Receiver<u64>, other: &mut Receiver<u64>) -> u64 {
        smol::future::race(one.recv(), other.recv()).await.expect("the senders are there")
    }
}

impl Channel<u64> for Unbounded {
    type Sender = Sender<u64>;
    type Receiver = Receiver<u64>;

    fn open() -> (Sender<u64>, Receiver<u64>) {
        unbounded()
    }

    async fn send(sender: &Sender<u64>, message: u64) {
        sender.send(message).await.expect("the receiver is there");
    }

    async fn receive(receiver: &mut Receiver<u64>) -> u64 {
        receiver.recv().await.expect("the sender is there")
    }
}

impl Oneshot for Once {
    type Sender = Sender<u64>;
    type Receiver = Receiver<u64>;

    fn open() -> (Sender<u64>, Receiver<u64>) {
        bounded(1)
    }

    fn send(sender: Sender<u64>, message: u64) {
        sender.try_send(message).expect("the receiver is there, and the slot is free");
    }

    async fn receive(receiver: Receiver<u64>) -> u64 {
        receiver.recv().await.expect("the sender replies")
    }
}
