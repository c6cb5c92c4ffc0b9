//! may. It has no channels with bounds, and its select over channels can lose what a losing arm was offered: it is not asked
//! for either.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst, fence};
use std::sync::{Arc, OnceLock};
use std::vec;

use may::coroutine::{self, Coroutine};
use may::sync::{Barrier, Condvar, Mutex, RwLock, Semphore, SyncFlag, WaitGroup, mpsc, spsc};

use super::alone::{self, Deed, deeds};
use super::crowd::{self, Lock, Permits, ReadLock};
use super::library::{Library, Pair, Way};
use super::meeting::{self, Gate, Party, Rounds, barrier};
use super::pairs::{self, Channel, Event, Oneshot, Turns};
use super::question::{ACQUIRERS, CONTENDERS, CROWD, Call, Meeting, PERMITS, Question, READERS};
use super::standard::poisonable_guards;
use super::waking::{self, Board, Then};
use crate::compare::worlds::Blocking;

/// What it has.
pub(super) struct Coroutines;

impl Library for Coroutines {
    fn way<T: Blocking, P: Pair>(question: Question) -> Option<Way> {
        Some(match question {
            Question::WriteFree => |n| crowd::write_freely::<RwLock<u64>>(n).into(),
            Question::ReadWrite => |n| crowd::share_over_yields::<T, RwLock<u64>>(READERS, n),
            Question::SemaphoreFree => |n| crowd::acquire_freely::<Semphore>(n).into(),
            Question::EventFree => |n| pairs::set_freely::<Parked>(n).into(),
            Question::MutexFree => |n| crowd::lock_freely::<Mutex<u64>>(n).into(),
            Question::MutexOverYield(2) => |n| crowd::lock_over_yields::<T, Mutex<u64>>(2, n),
            Question::MutexOverYield(64) => |n| crowd::lock_over_yields::<T, Mutex<u64>>(64, n),
            Question::MutexOverYield(1000) => |n| crowd::lock_over_yields::<T, Mutex<u64>>(1000, n),
            Question::MutexTiny(2) => |n| crowd::lock_briefly::<T, Mutex<u64>>(2, n),
            Question::MutexTiny(8) => |n| crowd::lock_briefly::<T, Mutex<u64>>(8, n),
            Question::MutexTiny(64) => |n| crowd::lock_briefly::<T, Mutex<u64>>(64, n),
            Question::ReadFree => |n| crowd::read_freely::<RwLock<u64>>(n).into(),
            Question::Event(_) => |n| pairs::set_to_and_fro::<P, Parked>(n).into(),
            Question::Condition(_) => |n| pairs::take_turns::<P, (Mutex<bool>, Condvar)>(n).into(),
            Question::Call(_) => |n| pairs::call::<P, Mpsc, Spsc>(n).into(),
            Question::Unbounded(_) => |n| pairs::stream::<P, Mpsc>(n).into(),
            Question::Semaphore => |n| crowd::acquire_over_yields::<T, Semphore>(PERMITS, ACQUIRERS, n),
            Question::ReadWriteTiny => |n| crowd::share_briefly::<T, RwLock<u64>>(CONTENDERS, n),
            Question::SemaphoreTiny => |n| crowd::acquire_briefly::<T, Semphore>(PERMITS, CONTENDERS, n),
            Question::NotifyFree => |n| alone::repeat::<Condvar>(n).into(),
            Question::ManualEventFree => |n| alone::repeat::<SyncFlag>(n).into(),
            Question::OneshotFree => |n| pairs::reply_freely::<Spsc>(n).into(),
            Question::BarrierFree => |n| alone::repeat::<Barrier>(n).into(),
            Question::WaitGroupFree => |n| alone::repeat::<Group>(n).into(),
            Question::Meet(Meeting::Barrier) => |n| meeting::meet::<T, Arc<Barrier>>(CROWD, n).into(),
            Question::Meet(Meeting::WaitGroup) => {
                |n| meeting::meet::<T, vec::IntoIter<WaitGroup>>(CROWD, n).into()
            }
            Question::Meet(Meeting::ManualEvent) => {
                |n| meeting::meet::<T, Rounds<Gate<SyncFlag>>>(CROWD, n).into()
            }
            Question::Wake(Call::NotifyOne) => {
                |n| waking::notify_one::<T, (Mutex<u64>, [Condvar; 2])>(CROWD, n)
            }
            Question::Wake(Call::NotifyAll) => {
                |n| waking::notify_all::<T, (Mutex<u64>, [Condvar; 2])>(CROWD, n).into()
            }
            _ => return None,
        })
    }
}

poisonable_guards!();

/// A wait group, made anew for each time: who waits gives it up.
struct Group;

deeds! {
    SyncFlag = SyncFlag::new(), |flag| {
        flag.fire();
        flag.wait();
    };
    Group = Group, |_| {
        let group = WaitGroup::new();
        drop(group.clone());
        group.wait();
    };
}

/// Who waits gives its group up, so each task has one of its own for each round.
impl Party for vec::IntoIter<WaitGroup> {
    fn of_all(tasks: usize, rounds: usize) -> Vec<Self> {
        let groups: Vec<_> = (0..rounds).map(|_| WaitGroup::new()).collect();
        (0..tasks).map(|_| groups.clone().into_iter()).collect()
    }

    fn meet(&mut self) {
        self.next().expect("there is one for each round").wait();
    }
}

/// It fires once.
impl Event for SyncFlag {
    fn new() -> Self {
        SyncFlag::new()
    }

    fn set(&self) {
        self.fire();
    }

    fn wait(&self) {
        SyncFlag::wait(self);
    }
}

impl Permits for Semphore {
    fn new(permits: usize) -> Self {
        Semphore::new(permits)
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        self.wait();
        let value = f();
        self.post();
        value
    }
}

/// Stands for an event, of which may has only one that fires once: a flag, and the coroutine that parks until it is set.
struct Parked {
    set: AtomicBool,
    waiter: OnceLock<Coroutine>,
}

impl Event for Parked {
    fn new() -> Self {
        Parked { set: AtomicBool::new(false), waiter: OnceLock::new() }
    }

    #[inline(always)]
    fn set(&self) {
        self.set.store(true, SeqCst);
        // Who waits has left its name or sees the flag: it fences between the two, in the other order.
        fence(SeqCst);
        if let Some(waiter) = self.waiter.get() {
            waiter.unpark();
        }
    }

    #[inline(always)]
    fn wait(&self) {
        if self.waiter.get().is_none() {
            self.waiter.get_or_init(coroutine::current);
            fence(SeqCst);
        }
        while !self.set.swap(false, SeqCst) {
            coroutine::park();
        }
    }
}

/// For several producers.
struct Mpsc;

/// For one.
struct Spsc;

impl<M: Send + 'static> Channel<M> for Mpsc {
    type Sender = mpsc::Sender<M>;
    type Receiver = mpsc::Receiver<M>;

    fn open() -> (mpsc::Sender<M>, mpsc::Receiver<M>) {
        mpsc::channel()
    }

    #[inline(always)]
    fn send(sender: &mpsc::Sender<M>, message: M) {
        assert!(sender.send(message).is_ok(), "the receiver is there");
    }

    #[inline(always)]
    fn receive(receiver: &mpsc::Receiver<M>) -> M {
        receiver.recv().expect("the sender is there")
    }
}

impl Oneshot for Spsc {
    type Sender = spsc::Sender<u64>;
    type Receiver = spsc::Receiver<u64>;

    fn open() -> (spsc::Sender<u64>, spsc::Receiver<u64>) {
        spsc::channel()
    }

    #[inline(always)]
    fn send(sender: spsc::Sender<u64>, message: u64) {
        sender.send(message).expect("the receiver is there");
    }

    #[inline(always)]
    fn receive(receiver: spsc::Receiver<u64>) -> u64 {
        receiver.recv().expect("the sender replies")
    }
}
