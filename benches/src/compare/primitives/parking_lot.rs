//! What parking_lot has.

use std::cell::Cell;

use parking_lot::{Condvar, Mutex, Once, ReentrantMutex, RwLock};

use super::alone::{self, Deed, deeds};
use super::crowd::{self, Lock, ReadLock};
use super::library::{Library, Pair, Way};
use super::pairs::{self, Turns};
use super::question::{CONTENDERS, CROWD, Call, Question};
use super::waking::{self, Board, Then};
use crate::compare::worlds::Blocking;

pub(super) struct ParkingLot;

impl Library for ParkingLot {
    fn way<T: Blocking, P: Pair>(question: Question) -> Option<Way> {
        Some(match question {
            Question::WriteFree => |n| crowd::write_freely::<RwLock<u64>>(n).into(),
            Question::MutexFree => |n| crowd::lock_freely::<Mutex<u64>>(n).into(),
            Question::MutexTiny(2) => |n| crowd::lock_briefly::<T, Mutex<u64>>(2, n),
            Question::MutexTiny(8) => |n| crowd::lock_briefly::<T, Mutex<u64>>(8, n),
            Question::MutexTiny(64) => |n| crowd::lock_briefly::<T, Mutex<u64>>(64, n),
            Question::ReadFree => |n| crowd::read_freely::<RwLock<u64>>(n).into(),
            Question::Condition(_) => |n| pairs::take_turns::<P, (Mutex<bool>, Condvar)>(n).into(),
            Question::ReadWriteTiny => |n| crowd::share_briefly::<T, RwLock<u64>>(CONTENDERS, n),
            Question::ReentrantFree => |n| crowd::lock_freely::<ReentrantMutex<Cell<u64>>>(n).into(),
            Question::ReentrantTiny => |n| crowd::lock_briefly::<T, ReentrantMutex<Cell<u64>>>(CONTENDERS, n),
            Question::UpgradableFree => |n| alone::repeat::<RwLock<u64>>(n).into(),
            Question::NotifyFree => |n| alone::repeat::<Condvar>(n).into(),
            Question::OnceFree => |n| alone::repeat::<Once>(n).into(),
            Question::MutexApart => crowd::lock_as_a_pair::<P, Mutex<u64>>,
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

/// What is asked of whoever has `Mutex`, `ReentrantMutex`, `RwLock`, `Condvar` and `Once` in scope, whose guards are parking_lot's or like them.
macro_rules! guards {
    () => {
        impl Lock for Mutex<u64> {
            fn new() -> Self {
                Mutex::new(0)
            }

            fn with<R>(&self, f: impl FnOnce(&mut u64) -> R) -> R {
                f(&mut self.lock())
            }
        }

        impl Lock for ReentrantMutex<Cell<u64>> {
            fn new() -> Self {
                ReentrantMutex::new(Cell::new(0))
            }

            fn with<R>(&self, f: impl FnOnce(&mut u64) -> R) -> R {
                let guard = self.lock();
                let mut count = guard.get();
                let value = f(&mut count);
                guard.set(count);
                value
            }
        }

        impl ReadLock for RwLock<u64> {
            fn new() -> Self {
                RwLock::new(0)
            }

            fn read<R>(&self, f: impl FnOnce(&u64) -> R) -> R {
                f(&RwLock::read(self))
            }

            fn write<R>(&self, f: impl FnOnce(&mut u64) -> R) -> R {
                f(&mut RwLock::write(self))
            }
        }

        impl Turns for (Mutex<bool>, Condvar) {
            fn new() -> Self {
                (Mutex::new(false), Condvar::new())
            }

            #[inline(always)]
            fn pass(&self, mine: bool) {
                let (turn, passed) = self;
                let mut turn = turn.lock();
                while *turn != mine {
                    passed.wait(&mut turn);
                }
                *turn = !mine;
                passed.notify_one();
            }
        }

        impl Board for (Mutex<u64>, [Condvar; 2]) {
            fn new() -> Self {
                (Mutex::new(0), [Condvar::new(), Condvar::new()])
            }

            fn pass(&self, at: usize, mut look: impl FnMut(&mut u64) -> Then) {
                let (number, conditions) = self;
                let mut number = number.lock();
                let mut then = look(&mut number);
                while then == Then::Wait {
                    conditions[at].wait(&mut number);
                    then = look(&mut number);
                }
                match then {
                    Then::NotifyOne => _ = conditions[1 - at].notify_one(),
                    Then::NotifyAll => _ = conditions[1 - at].notify_all(),
                    Then::Wait | Then::Go => {}
                }
            }
        }

        deeds! {
            RwLock<u64> = RwLock::new(0), |lock| drop(lock.upgradable_read());
            Condvar = Condvar::new(), |condition| condition.notify_one();
            Once = Once::new(), |once| once.call_once(|| ());
        }
    };
}

pub(super) use guards;

guards!();
