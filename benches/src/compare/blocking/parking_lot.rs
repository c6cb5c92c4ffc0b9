//! parking_lot.

use std::cell::Cell;
use std::convert::identity;

use parking_lot::{
    Condvar, Mutex, MutexGuard, Once, ReentrantMutex, ReentrantMutexGuard, RwLock, RwLockReadGuard,
    RwLockWriteGuard,
};

use super::Tasks;
use super::asked::alone::Deed;
use super::asked::crowd::{Lock, ReadLock};
use super::asked::library::{self, Library, Thing};
use super::asked::pairs::Turns;
use super::waking::{self, Board, Then};
use crate::compare::primitives::question::Question;

/// The primitives of parking_lot.
pub(in crate::compare) struct ParkingLot;

impl<T: Tasks> Library<T> for ParkingLot {
    const THINGS: &'static [Thing] = &[
        library::mutex::<T, Mutex<u64>>,
        library::mutex::<T, ReentrantMutex<Cell<u64>>>,
        library::read_write::<T, RwLock<u64>>,
        library::condition::<(Mutex<bool>, Condvar)>,
        library::deed::<RwLock<u64>>,
        library::deed::<Mutex<u64>>,
        library::deed::<Condvar>,
        library::deed::<Once>,
        waking::notified::<T, (Mutex<u64>, [Condvar; 2])>,
    ];
}

locks!(identity);
reentrant_locks!();
conditions!(identity, |condition, guard| condition.wait(&mut guard));
deeds! {
    UpgradableFree: RwLock<u64> = RwLock::new(0), |lock| drop(lock.upgradable_read());
    OnceFree: Once = Once::new(), |once| once.call_once(|| ());
}
