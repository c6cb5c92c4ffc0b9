//! smol. It has no channel without slots, no condition variable and no oneshot: for that one a channel of one
//! slot stands.

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

    const OWN: Thing = |question, n| {
        library::deed::<RwLock<u64>>(question, n)
            .or_else(|| library::deed::<(Sender<u64>, Receiver<u64>)>(question, n))
    };
}

pub(super) struct Once;

locks!(identity);
barriers!();
semaphores!(SemaphoreGuard, identity);
oneshot!(Once = Sender<u64>, Receiver<u64>, bounded(1), |to, message| to.try_send(message), |from| from.recv().await);
channels! {
    Bounded[SLOTS] = Sender, Receiver, bounded(SLOTS);
    Unbounded = Sender, Receiver, unbounded();
}
deeds! {
    UpgradableFree: RwLock<u64> = RwLock::new(0), |lock| drop(wait!(lock.upgradable_read()));
    EmptyLook: (Sender<u64>, Receiver<u64>) = bounded(SLOTS), |ends| ends.1.try_recv();
    CellFree: OnceCell<u64> = OnceCell::from(1), |cell| black_box(wait!(cell.get_or_init(async || 0)));
}

impl<const SLOTS: usize> Choice for Bounded<SLOTS> {
    async fn receive_either(one: &mut Receiver<u64>, other: &mut Receiver<u64>) -> u64 {
        smol::future::race(one.recv(), other.recv()).await.expect("the senders are there")
    }
}
