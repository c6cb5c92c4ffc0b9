//! smol. It has no channel without slots, no condition variable and no oneshot: for that one a channel of one slot stands.

use std::convert::identity;
use std::hint::black_box;

use smol::channel::{Receiver, Sender, bounded, unbounded};
use smol::lock::{
    Barrier, Mutex, MutexGuard, OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore,
    SemaphoreGuard,
};

use super::Most;
use super::asked::alone::Deed;
use super::asked::crowd::{Lock, Permits, ReadLock};
use super::asked::library::{self, Thing};
use super::asked::meeting::Party;
use super::asked::pairs::{Channel, Choice, Oneshot};
use crate::compare::primitives::question::{Meeting, Question, SLOTS};
use crate::compare::worlds::smol::Smol;

impl Most for Smol {
    type Mutex = Mutex<u64>;
    type RwLock = RwLock<u64>;
    type Semaphore = Semaphore;
    type One = Bounded<1>;
    type Slots = Bounded<SLOTS>;
    type Unbounded = Unbounded;
    type Once = Once;
    type OnceCell = OnceCell<u64>;
    type Barrier = std::sync::Arc<Barrier>;

    const OWN: Thing = library::deed::<RwLock<u64>>;
}

pub(super) struct Once;

locks!(identity);
barriers!();
channels! {
    Bounded[SLOTS] = Sender, Receiver, bounded(SLOTS);
    Unbounded = Sender, Receiver, unbounded();
}
deeds! {
    UpgradableFree: RwLock<u64> = RwLock::new(0), |lock| drop(wait!(lock.upgradable_read()));
    CellFree: OnceCell<u64> = OnceCell::from(1), |cell| black_box(wait!(cell.get_or_init(async || 0)));
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

impl<const SLOTS: usize> Choice for Bounded<SLOTS> {
    async fn receive_either(one: &mut Receiver<u64>, other: &mut Receiver<u64>) -> u64 {
        smol::future::race(one.recv(), other.recv()).await.expect("the senders are there")
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
