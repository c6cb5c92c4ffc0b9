//! What a library has whose operations are awaited.

use super::Way;
use super::alone::{self, Deed};
use super::crowd::{self, Lock, Permits, ReadLock};
use super::pairs::{self, Channel, Choice, Oneshot, Request};
use crate::compare::primitives::question::{
    ACQUIRERS, CONTENDERS, CROWD, Call, Meeting, PERMITS, Question, READERS,
};
use crate::compare::worlds::Awaiting;

/// One that has nearly all that is asked about. None has a channel without slots.
pub(super) trait Library: Awaiting {
    type Mutex: Lock;
    type RwLock: ReadLock;
    type Semaphore: Permits;
    /// A channel of one slot.
    type One: Channel<u64>;
    /// One of [`SLOTS`](crate::compare::primitives::question::SLOTS).
    type Slots: Choice + Channel<Request<Self::Once>>;
    type Unbounded: Channel<u64>;
    type Once: Oneshot;

    type OnceCell: Deed;
    type Barrier: Deed + crowd::Meeting;

    /// How it answers where not all have the thing.
    fn own_way(question: Question) -> Option<Way>;
}

/// How it answers the question; `None` where it has no such thing.
pub(super) fn way<L: Library>(question: Question) -> Option<Way> {
    Some(match question {
        Question::MutexFree => crowd::lock_freely::<L::Mutex>,
        Question::ReadFree => crowd::read_freely::<L::RwLock>,
        Question::WriteFree => crowd::write_freely::<L::RwLock>,
        Question::SemaphoreFree => crowd::acquire_freely::<L::Semaphore>,
        Question::MutexOverYield(2) => |n| crowd::lock_over_yields::<L, L::Mutex>(2, n),
        Question::MutexOverYield(64) => |n| crowd::lock_over_yields::<L, L::Mutex>(64, n),
        Question::MutexOverYield(1000) => |n| crowd::lock_over_yields::<L, L::Mutex>(1000, n),
        Question::MutexTiny(2) => |n| crowd::lock_briefly::<L, L::Mutex>(2, n),
        Question::MutexTiny(8) => |n| crowd::lock_briefly::<L, L::Mutex>(8, n),
        Question::MutexTiny(64) => |n| crowd::lock_briefly::<L, L::Mutex>(64, n),
        Question::ReadWrite => |n| crowd::share_over_yields::<L, L::RwLock>(READERS, n),
        Question::Semaphore => |n| crowd::acquire_over_yields::<L, L::Semaphore>(PERMITS, ACQUIRERS, n),
        Question::EventFree => pairs::set_freely::<L::Signal>,
        Question::ChannelFree => pairs::pass_freely::<L::Slots>,
        Question::PingPong(_) => pairs::ping_pong::<L::One>,
        Question::Event(_) => pairs::set_to_and_fro::<L::Signal>,
        Question::Call(_) => pairs::call::<L::Slots, L::Once>,
        Question::Bounded(_) => pairs::stream::<L::Slots>,
        Question::BoundedEight => pairs::stream_from_eight::<L, L::Slots>,
        Question::Unbounded(_) => pairs::stream::<L::Unbounded>,
        Question::Select => pairs::choose::<L, L::Slots>,
        Question::ReadWriteTiny => |n| crowd::share_briefly::<L, L::RwLock>(CONTENDERS, n),
        Question::SemaphoreTiny => |n| crowd::acquire_briefly::<L, L::Semaphore>(PERMITS, CONTENDERS, n),
        Question::CellFree => alone::repeat::<L::OnceCell>,
        Question::OneshotFree => pairs::reply_freely::<L::Once>,
        Question::SelectFree => pairs::choose_freely::<L::Slots>,
        Question::BarrierFree => alone::repeat::<L::Barrier>,
        Question::MutexApart => crowd::lock_as_a_pair::<L::Mutex>,
        Question::Meet(Meeting::Barrier) => |n| crowd::meet::<L, L::Barrier>(CROWD, n),
        Question::Wake(Call::Event) => |n| crowd::signal::<L>(CROWD, n),
        _ => return L::own_way(question),
    })
}

/// What is asked of whoever has `Mutex` and `RwLock`, with their guards, `OnceCell` and `Barrier` in scope.
macro_rules! locks {
    () => {
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

        impl Deed for OnceCell<u64> {
            fn new() -> Self {
                OnceCell::from(1)
            }

            async fn run(&self) {
                black_box(self.get_or_init(async || 0).await);
            }
        }

        impl Meeting for Barrier {
            fn of(tasks: usize) -> Self {
                Barrier::new(tasks)
            }

            async fn meet(&self) {
                self.wait().await;
            }
        }

        impl Deed for Barrier {
            fn new() -> Self {
                Barrier::new(1)
            }

            async fn run(&self) {
                self.wait().await;
            }
        }
    };
}

pub(super) use locks;
