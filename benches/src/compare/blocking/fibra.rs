//! fibra.

use std::cell::Cell;
use std::convert::identity;
use std::hint::black_box;
use std::sync::Arc;

use fibra::sync::channel::{Receiver, Sender, bounded, unbounded};
use fibra::sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, ManualResetEvent, Mutex, MutexGuard, Once, OnceCell,
    ReentrantMutex, ReentrantMutexGuard, RwLock, RwLockExt, RwLockReadGuard, RwLockWriteGuard, Semaphore,
    SemaphorePermit, WaitGroup, broadcast, oneshot, watch,
};

use super::Tasks;
use super::asked::alone::Deed;
use super::asked::crowd::{Lock, Permits, ReadLock};
use super::asked::library::{self, Library, Thing};
use super::asked::meeting::Party;
use super::asked::pairs::{Channel, Choice, Event, Oneshot, Turns};
use super::asked::spread::Spread;
use super::gathering::{Gate, Gathering, Rounds, events};
use super::waking::{self, Board, Then};
use crate::compare::primitives::question::{Meeting, Question, SLOTS};

/// The primitives of fibra.
pub(in crate::compare) struct Fibra;

impl<T: Tasks> Library<T> for Fibra {
    const THINGS: &'static [Thing] = &[
        library::mutex::<T, Mutex<u64>>,
        library::mutex::<T, ReentrantMutex<Cell<u64>>>,
        library::read_write::<T, RwLock<u64>>,
        library::semaphore::<T, Semaphore>,
        library::event::<AutoResetEvent>,
        library::shared_event::<T, AutoResetEvent>,
        library::condition::<(Mutex<bool>, Condvar)>,
        library::one_slot::<Bounded<1>>,
        library::no_slot::<Bounded<0>>,
        library::slots::<Bounded<SLOTS>>,
        library::more_slots::<T, Bounded<SLOTS>>,
        library::unbounded::<Unbounded>,
        library::select::<T, Bounded<SLOTS>>,
        library::oneshot::<Bounded<SLOTS>, Single>,
        library::broadcast::<T, Broadcast>,
        library::watch::<T, Watch>,
        library::meeting::<T, Arc<Barrier>>,
        library::meeting::<T, Rounds<WaitGroup>>,
        library::meeting::<T, Rounds<CountdownEvent>>,
        library::meeting::<T, Rounds<Gate<ManualResetEvent>>>,
        library::deed::<Arc<Barrier>>,
        library::deed::<RwLock<u64>>,
        library::deed::<Mutex<u64>>,
        library::deed::<Condvar>,
        library::deed::<ManualResetEvent>,
        library::deed::<Once>,
        library::deed::<OnceCell<u64>>,
        library::deed::<WaitGroup>,
        library::deed::<Countdown>,
        library::deed::<(Sender<u64>, Receiver<u64>)>,
        waking::notified::<T, (Mutex<u64>, [Condvar; 2])>,
    ];
}

/// Its read-write lock where a writer that waits goes before readers that come later.
pub(in crate::compare) struct WriterFirst(RwLock<u64>);

impl<T: Tasks> Library<T> for WriterFirst {
    const THINGS: &'static [Thing] = &[library::read_write::<T, WriterFirst>];
}

impl ReadLock for WriterFirst {
    type Read<'a> = RwLockReadGuard<'a, u64>;
    type Write<'a> = RwLockWriteGuard<'a, u64>;

    fn new() -> Self {
        WriterFirst(RwLock::writer_first(0))
    }

    fn read(&self) -> Self::Read<'_> {
        self.0.read()
    }

    fn write(&self) -> Self::Write<'_> {
        self.0.write()
    }
}

/// An event that counts down, made anew for each time, since it does so once.
struct Countdown;

struct Single;

locks!(identity);
reentrant_locks!();
conditions!(identity, |condition, guard| condition.wait(&mut guard));
barriers!();
spreads!();
channels! {
    Bounded[SLOTS] = Sender, Receiver, bounded(SLOTS);
    Unbounded = Sender, Receiver, unbounded();
}
oneshot!(Single = oneshot::Sender<u64>, oneshot::Receiver<u64>, oneshot::channel(), |to, message| to.send(message), |from| from.recv());
semaphores!(SemaphorePermit, identity);
events! {
    AutoResetEvent = AutoResetEvent::new(false), set, wait;
    ManualResetEvent = ManualResetEvent::new(false), set, wait;
}
deeds! {
    UpgradableFree: RwLock<u64> = RwLock::new(0), |lock| drop(lock.upgradable_read());
    EmptyLook: (Sender<u64>, Receiver<u64>) = bounded(SLOTS), |ends| ends.1.try_recv();
    OnceFree: Once = Once::new(), |once| once.call_once(|| ());
    ManualEventFree: ManualResetEvent = ManualResetEvent::new(false), |event| {
        event.set();
        event.wait();
    };
    CellFree: OnceCell<u64> = OnceCell::from(1), |cell| black_box(cell.get_or_init(|| 0));
    WaitGroupFree: WaitGroup = WaitGroup::new(), |group| {
        group.add(1);
        group.done();
        group.wait();
    };
    CountdownFree: Countdown = Countdown, |_| {
        let event = CountdownEvent::new(1);
        black_box(&event).signal();
        event.wait();
    };
}

impl Gathering for WaitGroup {
    const MEETING: Meeting = Meeting::WaitGroup;

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
    const MEETING: Meeting = Meeting::Countdown;

    fn of(tasks: usize) -> Self {
        CountdownEvent::new(tasks)
    }

    fn meet(&self) {
        self.signal();
        self.wait();
    }
}

impl<const SLOTS: usize> Choice for Bounded<SLOTS> {
    #[inline(always)]
    fn receive_either(one: &mut Receiver<u64>, other: &mut Receiver<u64>) -> u64 {
        fibra::select! {
            recv(one) -> message => message.expect("the sender is there"),
            recv(other) -> message => message.expect("the sender is there"),
        }
    }
}
