//! std.

use std::hint::black_box;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{
    Arc, Barrier, Condvar, LockResult, Mutex, MutexGuard, Once, OnceLock, RwLock, RwLockReadGuard,
    RwLockWriteGuard,
};

use super::Tasks;
use super::asked::alone::Deed;
use super::asked::crowd::{Lock, ReadLock};
use super::asked::library::{self, Library, Thing};
use super::asked::meeting::Party;
use super::asked::pairs::{Channel, Oneshot, Turns};
use super::waking::{self, Board, Then};
use crate::compare::primitives::question::{Meeting, Question, SLOTS};

/// The primitives of std.
pub(in crate::compare) struct Standard;

impl<T: Tasks> Library<T> for Standard {
    const THINGS: &'static [Thing] = &[
        library::mutex::<T, Mutex<u64>>,
        library::read_write::<T, RwLock<u64>>,
        library::condition::<(Mutex<bool>, Condvar)>,
        library::one_slot::<Bounded<1>>,
        library::no_slot::<Bounded<0>>,
        library::slots::<Bounded<SLOTS>>,
        library::more_slots::<T, Bounded<SLOTS>>,
        library::unbounded::<Unbounded>,
        library::oneshot::<Bounded<SLOTS>, Bounded<1>>,
        library::meeting::<T, Arc<Barrier>>,
        library::deed::<Arc<Barrier>>,
        library::deed::<Mutex<u64>>,
        library::deed::<Condvar>,
        library::deed::<Once>,
        library::deed::<OnceLock<u64>>,
        waking::notified::<T, (Mutex<u64>, [Condvar; 2])>,
    ];
}

/// The guard of a lock that a panic would poison.
pub(super) fn unpoisoned<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(|_| panic!("no task panics with it"))
}

locks!(unpoisoned);
conditions!(unpoisoned, |condition, guard| guard = unpoisoned(condition.wait(guard)));
barriers!();
channels! {
    Bounded[SLOTS] = SyncSender, Receiver, sync_channel(SLOTS);
    Unbounded = Sender, Receiver, channel();
}
oneshot!(Bounded<1> = SyncSender<u64>, Receiver<u64>, sync_channel(1), |to, message| to.send(message), |from| from.recv());
deeds! {
    OnceFree: Once = Once::new(), |once| once.call_once(|| ());
    CellFree: OnceLock<u64> = OnceLock::from(1), |cell| black_box(cell.get_or_init(|| 0));
}
