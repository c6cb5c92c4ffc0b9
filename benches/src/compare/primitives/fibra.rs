//! fibra.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;

use fibra::sync::channel::{Receiver, Sender, bounded, unbounded};
use fibra::sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, ManualResetEvent, Mutex, Once, OnceCell,
    ReentrantMutex, RwLock, Semaphore, WaitGroup, broadcast, oneshot, watch,
};

use super::alone::{self, Deed, deeds};
use super::channels::channel_kinds;
use super::crowd::{self, Lock, Permits, ReadLock};
use super::library::{Library, Pair, Way};
use super::meeting::{self, Gate, Gathering, Party, Rounds, barrier};
use super::pairs::{self, Channel, Choice, Event, Oneshot, Turns};
use super::parking_lot::guards;
use super::question::{
    ACQUIRERS, CONTENDERS, CROWD, Call, LOCKERS, Meeting, PERMITS, Question, READERS, SLOTS,
};
use super::spread::{self, Spread};
use super::waking::{self, Board, Then};
use crate::compare::worlds::Blocking;

/// What it has.
pub(super) struct Fibra;

impl Library for Fibra {
    fn way<T: Blocking, P: Pair>(question: Question) -> Option<Way> {
        Some(match question {
            Question::WriteFree => |n| crowd::write_freely::<RwLock<u64>>(n).into(),
            Question::ReadWrite => |n| crowd::share_over_yields::<T, RwLock<u64>>(READERS, n),
            Question::SemaphoreFree => |n| crowd::acquire_freely::<Semaphore>(n).into(),
            Question::EventFree => |n| pairs::set_freely::<AutoResetEvent>(n).into(),
            Question::ChannelFree => |n| pairs::pass_freely::<Bounded<SLOTS>>(n).into(),
            Question::Select => |n| pairs::choose::<T, Bounded<SLOTS>>(n).into(),
            Question::MutexFree => |n| crowd::lock_freely::<Mutex<u64>>(n).into(),
            Question::MutexOverYield(2) => |n| crowd::lock_over_yields::<T, Mutex<u64>>(2, n),
            Question::MutexOverYield(64) => |n| crowd::lock_over_yields::<T, Mutex<u64>>(64, n),
            Question::MutexOverYield(1000) => |n| crowd::lock_over_yields::<T, Mutex<u64>>(1000, n),
            Question::MutexTiny(2) => |n| crowd::lock_briefly::<T, Mutex<u64>>(2, n),
            Question::MutexTiny(8) => |n| crowd::lock_briefly::<T, Mutex<u64>>(8, n),
            Question::MutexTiny(64) => |n| crowd::lock_briefly::<T, Mutex<u64>>(64, n),
            Question::ReadFree => |n| crowd::read_freely::<RwLock<u64>>(n).into(),
            Question::PingPong(_) => |n| pairs::ping_pong::<P, Bounded<1>>(n).into(),
            Question::Rendezvous(_) => |n| pairs::ping_pong::<P, Bounded<0>>(n).into(),
            Question::Event(_) => |n| pairs::set_to_and_fro::<P, AutoResetEvent>(n).into(),
            Question::Condition(_) => |n| pairs::take_turns::<P, (Mutex<bool>, Condvar)>(n).into(),
            Question::Call(_) => |n| pairs::call::<P, Bounded<SLOTS>, Single>(n).into(),
            Question::Bounded(_) => |n| pairs::stream::<P, Bounded<SLOTS>>(n).into(),
            Question::BoundedEight => |n| pairs::stream_from_eight::<T, Bounded<SLOTS>>(n).into(),
            Question::Unbounded(_) => |n| pairs::stream::<P, Unbounded>(n).into(),
            Question::Semaphore => |n| crowd::acquire_over_yields::<T, Semaphore>(PERMITS, ACQUIRERS, n),
            Question::ReadWriteTiny => |n| crowd::share_briefly::<T, RwLock<u64>>(CONTENDERS, n),
            Question::SemaphoreTiny => |n| crowd::acquire_briefly::<T, Semaphore>(PERMITS, CONTENDERS, n),
            Question::ReentrantOverYield => {
                |n| crowd::lock_over_yields::<T, ReentrantMutex<Cell<u64>>>(LOCKERS, n)
            }
            Question::ReentrantFree => |n| crowd::lock_freely::<ReentrantMutex<Cell<u64>>>(n).into(),
            Question::ReentrantTiny => |n| crowd::lock_briefly::<T, ReentrantMutex<Cell<u64>>>(CONTENDERS, n),
            Question::UpgradableFree => |n| alone::repeat::<RwLock<u64>>(n).into(),
            Question::NotifyFree => |n| alone::repeat::<Condvar>(n).into(),
            Question::ManualEventFree => |n| alone::repeat::<ManualResetEvent>(n).into(),
            Question::OnceFree => |n| alone::repeat::<Once>(n).into(),
            Question::CellFree => |n| alone::repeat::<OnceCell<u64>>(n).into(),
            Question::OneshotFree => |n| pairs::reply_freely::<Single>(n).into(),
            Question::SelectFree => |n| pairs::choose_freely::<Bounded<SLOTS>>(n).into(),
            Question::BroadcastFree => |n| spread::pass_freely::<Broadcast>(n).into(),
            Question::Broadcast => |n| spread::send_to_all::<T, Broadcast>(n).into(),
            Question::WatchFree => |n| spread::pass_freely::<Watch>(n).into(),
            Question::Watch => |n| spread::send_to_all::<T, Watch>(n).into(),
            Question::BarrierFree => |n| alone::repeat::<Barrier>(n).into(),
            Question::WaitGroupFree => |n| alone::repeat::<WaitGroup>(n).into(),
            Question::CountdownFree => |n| alone::repeat::<Countdown>(n).into(),
            Question::MutexApart => crowd::lock_as_a_pair::<P, Mutex<u64>>,
            Question::Meet(Meeting::Barrier) => |n| meeting::meet::<T, Arc<Barrier>>(CROWD, n).into(),
            Question::Meet(Meeting::WaitGroup) => |n| meeting::meet::<T, Rounds<WaitGroup>>(CROWD, n).into(),
            Question::Meet(Meeting::Countdown) => {
                |n| meeting::meet::<T, Rounds<CountdownEvent>>(CROWD, n).into()
            }
            Question::Meet(Meeting::ManualEvent) => {
                |n| meeting::meet::<T, Rounds<Gate<ManualResetEvent>>>(CROWD, n).into()
            }
            Question::Wake(Call::Event) => |n| waking::set::<T, AutoResetEvent>(CROWD, n),
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

/// Its read-write lock where a writer that waits goes before readers that come later.
pub(super) struct WriterFirst(RwLock<u64>);

impl Library for WriterFirst {
    fn way<T: Blocking, P: Pair>(question: Question) -> Option<Way> {
        Some(match question {
            Question::ReadWrite => |n| crowd::share_over_yields::<T, WriterFirst>(READERS, n),
            Question::ReadWriteTiny => |n| crowd::share_briefly::<T, WriterFirst>(CONTENDERS, n),
            _ => return None,
        })
    }
}

impl ReadLock for WriterFirst {
    fn new() -> Self {
        WriterFirst(RwLock::writer_first(0))
    }

    fn read<R>(&self, f: impl FnOnce(&u64) -> R) -> R {
        ReadLock::read(&self.0, f)
    }

    fn write<R>(&self, f: impl FnOnce(&mut u64) -> R) -> R {
        ReadLock::write(&self.0, f)
    }
}

guards!();

/// An event that counts down, made anew for each time, since it does so once.
struct Countdown;

deeds! {
    ManualResetEvent = ManualResetEvent::new(false), |event| {
        event.set();
        event.wait();
    };
    OnceCell<u64> = OnceCell::from(1), |cell| black_box(cell.get_or_init(|| 0));
    Barrier = Barrier::new(1), |barrier| barrier.wait();
    WaitGroup = WaitGroup::new(), |group| {
        group.add(1);
        group.done();
        group.wait();
    };
    Countdown = Countdown, |_| {
        let event = CountdownEvent::new(1);
        black_box(&event).signal();
        event.wait();
    };
}

barrier!(Barrier);

impl Gathering for WaitGroup {
    fn of(tasks: usize) -> Self {
        let group = WaitGroup::new();
        group.add(tasks);
        group
    }

    fn meet(&self) {
        self.done();
        self.wait();
    }
}

impl Gathering for CountdownEvent {
    fn of(tasks: usize) -> Self {
        CountdownEvent::new(tasks)
    }

    fn meet(&self) {
        self.signal();
        self.wait();
    }
}

impl Event for ManualResetEvent {
    fn new() -> Self {
        ManualResetEvent::new(false)
    }

    fn set(&self) {
        ManualResetEvent::set(self);
    }

    fn wait(&self) {
        ManualResetEvent::wait(self);
    }
}

impl Permits for Semaphore {
    fn new(permits: usize) -> Self {
        Semaphore::new(permits)
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _permit = self.acquire();
        f()
    }
}

impl Event for AutoResetEvent {
    fn new() -> Self {
        AutoResetEvent::new(false)
    }

    #[inline(always)]
    fn set(&self) {
        AutoResetEvent::set(self);
    }

    #[inline(always)]
    fn wait(&self) {
        AutoResetEvent::wait(self);
    }
}

channel_kinds!();

struct Single;

impl Oneshot for Single {
    type Sender = oneshot::Sender<u64>;
    type Receiver = oneshot::Receiver<u64>;

    fn open() -> (oneshot::Sender<u64>, oneshot::Receiver<u64>) {
        oneshot::channel()
    }

    #[inline(always)]
    fn send(sender: oneshot::Sender<u64>, message: u64) {
        sender.send(message).expect("the receiver is there");
    }

    #[inline(always)]
    fn receive(receiver: oneshot::Receiver<u64>) -> u64 {
        receiver.recv().expect("the sender replies")
    }
}

impl<const SLOTS: usize> Choice for Bounded<SLOTS> {
    #[inline(always)]
    fn receive_either(one: &Receiver<u64>, other: &Receiver<u64>) -> u64 {
        fibra::select! {
            recv(one) -> message => message.expect("the sender is there"),
            recv(other) -> message => message.expect("the sender is there"),
        }
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

    #[inline(always)]
    fn send(sender: &broadcast::Sender<u64>, message: u64) {
        sender.send(message).expect("the receivers are there");
    }

    #[inline(always)]
    fn receive(receiver: &mut broadcast::Receiver<u64>) -> u64 {
        receiver.recv().expect("the sender waits for all")
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

    #[inline(always)]
    fn send(sender: &watch::Sender<u64>, message: u64) {
        sender.send(message).expect("the receivers are there");
    }

    #[inline(always)]
    fn receive(receiver: &mut watch::Receiver<u64>) -> u64 {
        receiver.changed().expect("the sender waits for all");
        *receiver.borrow_and_update()
    }
}
