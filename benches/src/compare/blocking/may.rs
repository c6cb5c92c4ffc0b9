//! may. It has no channels with bounds, and its select over channels can lose what a losing arm was offered:
//! it is not asked for either.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst, fence};
use std::sync::{Arc, OnceLock};
use std::vec;

use may::coroutine::{self, Coroutine};
use may::sync::mpsc::{Receiver, Sender, channel};
use may::sync::{
    Barrier, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, Semphore, SyncFlag,
    WaitGroup, spsc,
};

use super::Tasks;
use super::asked::alone::Deed;
use super::asked::crowd::{Lock, Permits, ReadLock};
use super::asked::library::{self, Library, Thing};
use super::asked::meeting::Party;
use super::asked::pairs::{Channel, Event, Oneshot, Turns};
use super::gathering::{Gate, Rounds, events};
use super::standard::unpoisoned;
use super::waking::{self, Board, Then};
use crate::compare::primitives::question::{Meeting, Question};

/// The primitives of may.
pub(in crate::compare) struct Coroutines;

impl<T: Tasks> Library<T> for Coroutines {
    const THINGS: &'static [Thing] = &[
        library::mutex::<T, Mutex<u64>>,
        library::read_write::<T, RwLock<u64>>,
        library::semaphore::<T, Semphore>,
        library::event::<Parked>,
        library::condition::<(Mutex<bool>, Condvar)>,
        library::unbounded::<Unbounded>,
        library::oneshot::<Unbounded, Single>,
        library::meeting::<T, Arc<Barrier>>,
        library::meeting::<T, vec::IntoIter<WaitGroup>>,
        library::meeting::<T, Rounds<Gate<SyncFlag>>>,
        library::deed::<Arc<Barrier>>,
        library::deed::<Mutex<u64>>,
        library::deed::<Condvar>,
        library::deed::<SyncFlag>,
        library::deed::<Group>,
        waking::notified::<T, (Mutex<u64>, [Condvar; 2])>,
    ];
}

locks!(unpoisoned);
conditions!(unpoisoned, |condition, guard| guard = unpoisoned(condition.wait(guard)));
barriers!();
channels! { Unbounded = Sender, Receiver, channel(); }
oneshot!(Single = spsc::Sender<u64>, spsc::Receiver<u64>, spsc::channel(), |to, message| to.send(message), |from| from.recv());
// It fires once.
events! { SyncFlag = SyncFlag::new(), fire, wait; }

/// A channel for one producer.
struct Single;

/// A wait group, made anew for each time: a task that waits gives it up.
struct Group;

deeds! {
    ManualEventFree: SyncFlag = SyncFlag::new(), |flag| {
        flag.fire();
        flag.wait();
    };
    WaitGroupFree: Group = Group, |_| {
        let group = WaitGroup::new();
        drop(group.clone());
        group.wait();
    };
}

/// A task that waits gives its group up, so each task has one of its own for each round.
impl Party for vec::IntoIter<WaitGroup> {
    const MEETING: Meeting = Meeting::WaitGroup;

    fn of_all(tasks: usize, rounds: usize) -> Vec<Self> {
        let groups: Vec<_> = (0..rounds).map(|_| WaitGroup::new()).collect();
        (0..tasks).map(|_| groups.clone().into_iter()).collect()
    }

    fn meet(&mut self) {
        self.next().expect("there is one for each round").wait();
    }
}

/// A permit, which goes back when this is dropped.
pub(in crate::compare) struct Permit<'a>(&'a Semphore);

impl Permits for Semphore {
    type Permit<'a> = Permit<'a>;

    fn new(permits: usize) -> Self {
        Semphore::new(permits)
    }

    fn acquire(&self) -> Permit<'_> {
        self.wait();
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.post();
    }
}

/// Stands for an event, of which may has only one that fires once: a flag, and the coroutine that parks until
/// it is set.
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
        // The waiter has left its name or sees the flag: it fences between the two, in the other order.
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
