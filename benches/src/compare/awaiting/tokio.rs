//! tokio. It has no channel without slots and no condition variable: a mutex and a `Notify` for each side
//! stand for the latter.

use std::convert::identity;
use std::hint::black_box;

use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::sync::{
    Barrier, Mutex, MutexGuard, Notify, OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore,
    SemaphorePermit, broadcast, oneshot, watch,
};

use super::Most;
use super::asked::Asked;
use super::asked::alone::Deed;
use super::asked::crowd::{Lock, Permits, ReadLock};
use super::asked::library::{self, Thing};
use super::asked::meeting::Party;
use super::asked::pairs::{Channel, Choice, Oneshot, Turns};
use super::asked::spread::Spread;
use crate::compare::primitives::question::{Meeting, Question, SLOTS};
use crate::compare::worlds::tokio::Tokio;

impl Most for Tokio {
    type Mutex = Mutex<u64>;
    type RwLock = RwLock<u64>;
    type Semaphore = Semaphore;
    type One = Bounded<1>;
    type Slots = Bounded<SLOTS>;
    type Unbounded = Unbounded;
    type Once = Once;
    type OnceCell = OnceCell<u64>;
    type Barrier = std::sync::Arc<Barrier>;

    const OWN: Thing = own;
}

fn own(question: Question, n: u64) -> Option<Asked> {
    library::condition::<Notified>(question, n)
        .or_else(|| library::broadcast::<Tokio, Broadcast>(question, n))
        .or_else(|| library::watch::<Tokio, Watch>(question, n))
        .or_else(|| library::deed::<Notify>(question, n))
}

pub(super) struct Once;

locks!(identity);
barriers!();
semaphores!(SemaphorePermit, |permit: Result<_, _>| permit.expect("nothing closes it"));
oneshot!(Once = oneshot::Sender<u64>, oneshot::Receiver<u64>, oneshot::channel(), |to, message| to.send(message), |from| from.await);
spreads!();
channels! { Bounded[SLOTS] = Sender, Receiver, channel(SLOTS); }
channels! { Unbounded = UnboundedSender, UnboundedReceiver, unbounded_channel(), |to, message| to.send(message), |from| from.recv().await; }
deeds! {
    CellFree: OnceCell<u64> = OnceCell::from(1), |cell| black_box(wait!(cell.get_or_init(async || 0)));
    // No notification is kept for a task that waits later, as with a condition variable.
    NotifyFree: Notify = Notify::new(), |notify| notify.notify_waiters();
}

impl<const SLOTS: usize> Choice for Bounded<SLOTS> {
    async fn receive_either(one: &mut Receiver<u64>, other: &mut Receiver<u64>) -> u64 {
        let message = tokio::select! {
            message = one.recv() => message,
            message = other.recv() => message,
        };
        message.expect("the senders are there")
    }
}

/// The task whose turn it is, and a `Notify` for each of the two: a task that passes the turn must not take
/// its own notification.
struct Notified {
    turn: Mutex<bool>,
    passed: [Notify; 2],
}

impl Turns for Notified {
    fn new() -> Self {
        Notified { turn: Mutex::new(false), passed: [Notify::new(), Notify::new()] }
    }

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
