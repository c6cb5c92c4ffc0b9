//! smol. It has no channel without slots, no condition variable and no oneshot: for that one a channel of one slot stands.

use smol::channel::{Receiver, Sender, bounded, unbounded};
use smol::lock::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphoreGuard};

use super::super::question::{ACQUIRERS, PERMITS, Question, READERS, SLOTS};
use super::Way;
use super::crowd::{self, Lock, Permits, ReadLock};
use super::pairs::{self, Channel, Choice, Oneshot};
use crate::compare::worlds::smol::{Flag, Smol};

struct Bounded<const SLOTS: usize>;

struct Unbounded;

struct Once;

pub(super) fn way(question: Question) -> Option<Way> {
    Some(match question {
        Question::MutexFree => crowd::lock_freely::<Mutex<u64>>,
        Question::ReadFree => crowd::read_freely::<RwLock<u64>>,
        Question::WriteFree => crowd::write_freely::<RwLock<u64>>,
        Question::SemaphoreFree => crowd::acquire_freely::<Semaphore>,
        Question::MutexOverYield(2) => |n| crowd::lock_over_yields::<Smol, Mutex<u64>>(2, n),
        Question::MutexOverYield(64) => |n| crowd::lock_over_yields::<Smol, Mutex<u64>>(64, n),
        Question::MutexOverYield(1000) => |n| crowd::lock_over_yields::<Smol, Mutex<u64>>(1000, n),
        Question::MutexTiny(2) => |n| crowd::lock_briefly::<Smol, Mutex<u64>>(2, n),
        Question::MutexTiny(8) => |n| crowd::lock_briefly::<Smol, Mutex<u64>>(8, n),
        Question::MutexTiny(64) => |n| crowd::lock_briefly::<Smol, Mutex<u64>>(64, n),
        Question::ReadWrite => |n| crowd::share_over_yields::<Smol, RwLock<u64>>(READERS, n),
        Question::Semaphore => |n| crowd::acquire_over_yields::<Smol, Semaphore>(PERMITS, ACQUIRERS, n),
        Question::EventFree => pairs::set_freely::<Flag>,
        Question::ChannelFree => pairs::pass_freely::<Bounded<SLOTS>>,
        Question::PingPong(_) => pairs::ping_pong::<Bounded<1>>,
        Question::Event(_) => pairs::set_to_and_fro::<Flag>,
        Question::Call(_) => pairs::call::<Bounded<SLOTS>, Once>,
        Question::Bounded(_) => pairs::stream::<Bounded<SLOTS>>,
        Question::BoundedEight => pairs::stream_from_eight::<Smol, Bounded<SLOTS>>,
        Question::Unbounded(_) => pairs::stream::<Unbounded>,
        Question::Select => pairs::choose::<Smol, Bounded<SLOTS>>,
        _ => return None,
    })
}

impl Lock for Mutex<u64> {
    type Guard<'a> = MutexGuard<'a, u64>;

    fn new() -> Self {
        Mutex::new(0)
    }

    fn lock(&self) -> impl Future<Output = MutexGuard<'_, u64>> + Send {
        Mutex::lock(self)
    }
}

impl ReadLock for RwLock<u64> {
    type Read<'a> = RwLockReadGuard<'a, u64>;
    type Write<'a> = RwLockWriteGuard<'a, u64>;

    fn new() -> Self {
        RwLock::new(0)
    }

    fn read(&self) -> impl Future<Output = RwLockReadGuard<'_, u64>> + Send {
        RwLock::read(self)
    }

    fn write(&self) -> impl Future<Output = RwLockWriteGuard<'_, u64>> + Send {
        RwLock::write(self)
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
