//! tokio. It has no channel without slots and no condition variable: a mutex and a `Notify` for each side stand for the latter.

use tokio::sync::{
    Mutex, MutexGuard, Notify, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit, mpsc,
    oneshot,
};

use super::super::question::{ACQUIRERS, PERMITS, Question, READERS, SLOTS};
use super::Way;
use super::crowd::{self, Lock, Permits, ReadLock};
use super::pairs::{self, Channel, Choice, Oneshot};
use crate::compare::worlds::tokio::Tokio;

struct Bounded<const SLOTS: usize>;

struct Unbounded;

struct Once;

/// Whose turn it is, and where each of the two waits for its own: who passes the turn must not take its own notification.
#[derive(Default)]
struct Turns {
    turn: Mutex<bool>,
    passed: [Notify; 2],
}

pub(super) fn way(question: Question) -> Option<Way> {
    Some(match question {
        Question::MutexFree => crowd::lock_freely::<Mutex<u64>>,
        Question::ReadFree => crowd::read_freely::<RwLock<u64>>,
        Question::WriteFree => crowd::write_freely::<RwLock<u64>>,
        Question::SemaphoreFree => crowd::acquire_freely::<Semaphore>,
        Question::MutexOverYield(2) => |n| crowd::lock_over_yields::<Tokio, Mutex<u64>>(2, n),
        Question::MutexOverYield(64) => |n| crowd::lock_over_yields::<Tokio, Mutex<u64>>(64, n),
        Question::MutexOverYield(1000) => |n| crowd::lock_over_yields::<Tokio, Mutex<u64>>(1000, n),
        Question::MutexTiny(2) => |n| crowd::lock_briefly::<Tokio, Mutex<u64>>(2, n),
        Question::MutexTiny(8) => |n| crowd::lock_briefly::<Tokio, Mutex<u64>>(8, n),
        Question::MutexTiny(64) => |n| crowd::lock_briefly::<Tokio, Mutex<u64>>(64, n),
        Question::ReadWrite => |n| crowd::share_over_yields::<Tokio, RwLock<u64>>(READERS, n),
        Question::Semaphore => |n| crowd::acquire_over_yields::<Tokio, Semaphore>(PERMITS, ACQUIRERS, n),
        Question::EventFree => pairs::set_freely::<Notify>,
        Question::ChannelFree => pairs::pass_freely::<Bounded<SLOTS>>,
        Question::PingPong(_) => pairs::ping_pong::<Bounded<1>>,
        Question::Event(_) => pairs::set_to_and_fro::<Notify>,
        Question::Condition(_) => pairs::take_turns::<Turns>,
        Question::Call(_) => pairs::call::<Bounded<SLOTS>, Once>,
        Question::Bounded(_) => pairs::stream::<Bounded<SLOTS>>,
        Question::BoundedEight => pairs::stream_from_eight::<Tokio, Bounded<SLOTS>>,
        Question::Unbounded(_) => pairs::stream::<Unbounded>,
        Question::Select => pairs::choose::<Tokio, Bounded<SLOTS>>,
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
