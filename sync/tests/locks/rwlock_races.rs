//! The promises of the read-write lock under races: no waiter is lost, none starves, nothing is counted twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    Dice, Side, beside, beside_runtimes, everywhere, few_or_many, give_way, guarded, in_tasks, runtime, until,
};
use crate::rwlocks::door_is_closed;
use fibra_runtime::{self as fibra, wait};
use fibra_sync::{RwLock, RwLockExt, RwLockUpgradableReadGuard, RwLockWriteGuard};

/// A lock whose users see to it that it keeps its promise, and count what they write.
struct Watched {
    /// Written by writers only, both halves at once.
    lock: RwLock<(u64, u64)>,
    readers: AtomicU64,
    writers: AtomicU64,
    written: AtomicU64,
}

impl Watched {
    fn both() -> [Arc<Self>; 2] {
        [RwLock::new((0, 0)), RwLock::writer_first((0, 0))].map(|lock| {
            let none = || AtomicU64::new(0);
            Arc::new(Watched { lock, readers: none(), writers: none(), written: none() })
        })
    }

    /// Checks as a reader: no writer is in, and none comes.
    fn see(&self, value: &(u64, u64)) {
        self.readers.fetch_add(1, Ordering::SeqCst);
        let before = *value;
        give_way();
        assert_eq!(*value, before);
        assert_eq!(value.0, value.1);
        assert_eq!(self.writers.load(Ordering::SeqCst), 0, "a reader beside a writer");
        self.readers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Checks as the writer: no other task is in.
    fn change(&self, value: &mut (u64, u64)) {
        assert_eq!(self.writers.fetch_add(1, Ordering::SeqCst), 0, "two writers");
        value.0 += 1;
        give_way();
        assert_eq!(self.readers.load(Ordering::SeqCst), 0, "a writer beside a reader");
        value.1 += 1;
        self.written.fetch_add(1, Ordering::Relaxed);
        self.writers.fetch_sub(1, Ordering::SeqCst);
    }

    /// One use of the lock, in a way that the dice choose. True if it got in.
    fn use_it(&self, dice: &mut Dice) -> bool {
        let timeout = Duration::from_micros(dice.throw(300));
        match dice.throw(12) {
            0..=2 => self.see(&self.lock.read()),
            3 => self.change(&mut self.lock.write()),
            4 => return self.lock.try_read().inspect(|guard| self.see(guard)).is_some(),
            5 => return self.lock.try_read_for(timeout).inspect(|guard| self.see(guard)).is_some(),
            6 => match self.lock.try_write_for(timeout) {
                Some(mut guard) => self.change(&mut guard),
                None => return false,
            },
            7 => {
                let mut guard = self.lock.write();
                self.change(&mut guard);
                self.see_downgraded(RwLockWriteGuard::downgrade(guard));
            }
            8 => {
                let guard = self.lock.upgradable_read();
                self.see(&guard);
                self.change(&mut RwLockUpgradableReadGuard::upgrade(guard));
            }
            9 => return self.upgrade_in_time(timeout),
            10 => {
                let mut guard = self.lock.write();
                self.change(&mut guard);
                let guard = RwLockWriteGuard::downgrade_to_upgradable(guard);
                self.see(&guard);
                self.see_downgraded(RwLockUpgradableReadGuard::downgrade(guard));
            }
            _ => {
                let mut guard = self.lock.write();
                RwLockWriteGuard::bump(&mut guard);
                self.change(&mut guard);
            }
        }
        true
    }

    fn see_downgraded(&self, mut guard: fibra_sync::RwLockReadGuard<'_, (u64, u64)>) {
        self.see(&guard);
        fibra_sync::RwLockReadGuard::bump(&mut guard);
        self.see(&guard);
    }

    fn upgrade_in_time(&self, timeout: Duration) -> bool {
        let Some(guard) = self.lock.try_upgradable_read_for(timeout) else { return false };
        match RwLockUpgradableReadGuard::try_upgrade_for(guard, timeout) {
            Ok(mut guard) => self.change(&mut guard),
            Err(guard) => self.see(&guard),
        }
        true
    }

    /// Once all users have ended.
    fn assert_whole(&self) {
        let written = self.written.load(Ordering::Relaxed);
        let value = self.lock.try_write().expect("the lock is free and has no waiters");
        assert_eq!(*value, (written, written));
        drop(value);
        drop(self.lock.try_upgradable_read().expect("readers are admitted"));
    }
}

fn users(watched: &Arc<Watched>, count: u64, rounds: usize) -> Vec<Side<()>> {
    (1..=count)
        .map(|seed| (seed, Arc::clone(watched)))
        .map(|(seed, watched)| {
            beside(move || {
                let mut dice = Dice::new(seed);
                for _ in 0..rounds {
                    watched.use_it(&mut dice);
                }
            })
        })
        .collect()
}

#[test]
fn readers_or_one_writer_are_in_whatever_happens() {
    in_tasks(|| {
        for watched in Watched::both() {
            users(&watched, 40, 60).into_iter().for_each(Side::join);
            watched.assert_whole();
        }
    });
    guarded(|| {
        for watched in Watched::both() {
            users(&watched, 6, 200).into_iter().for_each(Side::join);
            watched.assert_whole();
        }
    });
}

#[test]
fn tasks_and_threads_share_a_lock() {
    beside_runtimes(|runtime| {
        for watched in Watched::both() {
            let threads = users(&watched, 3, 200);
            runtime.run(|| users(&watched, 20, 60).into_iter().for_each(Side::join));
            threads.into_iter().for_each(Side::join);
            watched.assert_whole();
        }
    });
}

#[test]
fn all_that_is_written_is_read() {
    // Eight cells that writers set to one number and readers compare, many more readers than writers.
    everywhere(|| {
        let cells = Arc::new(RwLock::new([0_u64; 8]));
        let users: Vec<_> = (1..=12)
            .map(|number| (number, Arc::clone(&cells)))
            .map(|(number, cells)| {
                beside(move || {
                    for round in 0..100 {
                        if (round + number) % 10 == 0 {
                            let mut cells = cells.write();
                            let next = cells[0] + number;
                            cells.iter_mut().for_each(|cell| *cell = next);
                        } else {
                            let cells = cells.read();
                            assert!(cells.iter().all(|cell| *cell == cells[0]));
                        }
                    }
                })
            })
            .collect();
        users.into_iter().for_each(Side::join);
        let added: u64 = (1..=12).map(|number| number * 10).sum();
        assert_eq!(*cells.read(), [added; 8]);
    });
}

#[test]
fn an_attempt_to_read_never_fails_among_readers() {
    everywhere(|| {
        for watched in Watched::both() {
            let readers: Vec<_> = (0..few_or_many(4, 30))
                .map(|number| (number, Arc::clone(&watched)))
                .map(|(number, watched)| {
                    beside(move || {
                        for round in 0..300 {
                            let upgradable =
                                (number == 0).then(|| watched.lock.try_upgradable_read().unwrap());
                            let reading = watched.lock.try_read().expect("no writer is in");
                            drop(upgradable);
                            if round % 32 == 0 {
                                watched.see(&reading);
                            }
                        }
                    })
                })
                .collect();
            readers.into_iter().for_each(Side::join);
            watched.assert_whole();
        }
    });
}

#[test]
fn handed_on_from_reader_to_reader_it_is_never_free() {
    everywhere(|| {
        for watched in Watched::both() {
            let turn = Arc::new(AtomicUsize::new(0));
            let shared = || (Arc::clone(&watched), Arc::clone(&turn));
            let before = watched.lock.read();
            let readers = (0..READERS).map(|first| {
                let (watched, turn) = shared();
                beside(move || hand_on(&watched.lock, &turn, first))
            });
            let writers = (0..2).map(|_| {
                let (watched, turn) = shared();
                beside(move || {
                    while turn.load(Ordering::SeqCst) <= TURNS {
                        assert!(watched.lock.try_write().is_none());
                        give_way();
                    }
                })
            });
            let all: Vec<_> = readers.chain(writers).collect();
            until(|| turn.load(Ordering::SeqCst) > 0);
            drop(before);
            until(|| turn.load(Ordering::SeqCst) == TURNS);
            let after = watched.lock.read();
            turn.store(TURNS + 1, Ordering::SeqCst);
            all.into_iter().for_each(Side::join);
            drop(after);
            watched.assert_whole();
        }
    });
}

/// How many hand the lock on, and how often.
const READERS: usize = 4;
const TURNS: usize = 400;

/// Reads in each turn of its own, until the next one reads.
fn hand_on<T>(lock: &RwLock<T>, turn: &AtomicUsize, first: usize) {
    for own in (first..TURNS).step_by(READERS) {
        until(|| turn.load(Ordering::SeqCst) == own);
        let _reading = lock.read();
        turn.store(own + 1, Ordering::SeqCst);
        until(|| turn.load(Ordering::SeqCst) > own + 1);
    }
}

#[test]
fn a_stream_of_readers_does_not_starve_a_writer() {
    everywhere(|| {
        for watched in Watched::both() {
            let stop = Arc::new(AtomicBool::new(false));
            let readers = stream(&watched, &stop, |watched| {
                let guard = watched.lock.read();
                watched.see(&guard);
                watched.see(&guard);
            });
            for _ in 0..5 {
                watched.change(&mut watched.lock.write());
                let upgradable = watched.lock.upgradable_read();
                watched.change(&mut RwLockUpgradableReadGuard::upgrade(upgradable));
            }
            stop.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(Side::join);
            watched.assert_whole();
        }
    });
}

#[test]
fn phase_fair_a_stream_of_writers_does_not_starve_a_reader() {
    everywhere(|| {
        let [watched, _] = Watched::both();
        let stop = Arc::new(AtomicBool::new(false));
        let writers = stream(&watched, &stop, |watched| watched.change(&mut watched.lock.write()));
        for _ in 0..10 {
            watched.see(&watched.lock.read());
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(Side::join);
        watched.assert_whole();
    });
}

/// Six tasks that repeat one thing until told to stop.
fn stream(watched: &Arc<Watched>, stop: &Arc<AtomicBool>, turn: fn(&Watched)) -> Vec<Side<()>> {
    (0..6)
        .map(|_| (Arc::clone(watched), Arc::clone(stop)))
        .map(|(watched, stop)| {
            beside(move || {
                while !stop.load(Ordering::Relaxed) {
                    turn(&watched);
                }
            })
        })
        .collect()
}

/// Many waiters with one deadline, at which the holder leaves: `rounds` times `count` of them.
fn leave_at_the_deadline(
    watched: &Arc<Watched>,
    rounds: u64,
    count: u64,
    attempt: fn(&Watched, Instant) -> bool,
) {
    let tries = Arc::new(AtomicUsize::new(0));
    for round in 0..rounds {
        let mut writing = watched.lock.write();
        let deadline = Instant::now() + Duration::from_micros(200);
        let waiters: Vec<_> = (0..count)
            .map(|_| (Arc::clone(watched), Arc::clone(&tries)))
            .map(|(watched, tries)| {
                beside(move || {
                    attempt(&watched, deadline);
                    tries.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect();
        watched.change(&mut writing);
        let leaves = deadline - Duration::from_micros(10) + Duration::from_micros(round % 40);
        while Instant::now() < leaves {
            give_way();
        }
        match round % 3 {
            0 => drop(writing),
            1 => drop(RwLockWriteGuard::downgrade(writing)),
            _ => drop(RwLockWriteGuard::downgrade_to_upgradable(writing)),
        }
        waiters.into_iter().for_each(Side::join);
        watched.assert_whole();
    }
    assert_eq!(tries.load(Ordering::Relaxed) as u64, rounds * count);
}

fn leave_at_the_deadline_everywhere(attempt: fn(&Watched, Instant) -> bool) {
    in_tasks(|| {
        for watched in Watched::both() {
            leave_at_the_deadline(&watched, 60, 40, attempt);
        }
    });
    guarded(|| {
        for watched in Watched::both() {
            leave_at_the_deadline(&watched, 40, 3, attempt);
        }
    });
}

#[test]
fn readers_let_in_as_their_time_runs_out_are_in_or_out_and_not_lost() {
    leave_at_the_deadline_everywhere(|watched, deadline| {
        watched.lock.try_read_until(deadline).inspect(|guard| watched.see(guard)).is_some()
    });
}

#[test]
fn writers_let_in_as_their_time_runs_out_are_in_or_out_and_not_lost() {
    leave_at_the_deadline_everywhere(|watched, deadline| match watched.lock.try_write_until(deadline) {
        Some(mut guard) => {
            watched.change(&mut guard);
            true
        }
        None => false,
    });
}

#[test]
fn all_kinds_let_in_as_their_time_runs_out_are_in_or_out_and_not_lost() {
    static TURN: AtomicU64 = AtomicU64::new(0);
    leave_at_the_deadline_everywhere(|watched, deadline| match TURN.fetch_add(1, Ordering::Relaxed) % 4 {
        0 => match watched.lock.try_write_until(deadline) {
            Some(mut guard) => {
                watched.change(&mut guard);
                true
            }
            None => false,
        },
        1 => watched.upgrade_in_time(deadline.saturating_duration_since(Instant::now())),
        _ => watched.lock.try_read_until(deadline).inspect(|guard| watched.see(guard)).is_some(),
    });
}

#[test]
fn upgrades_at_their_deadline_as_the_last_reader_leaves_are_done_or_not() {
    in_tasks(|| {
        for watched in Watched::both() {
            for round in 0..600 {
                let reading = watched.lock.read();
                let deadline = Instant::now() + Duration::from_micros(60);
                let shared = Arc::clone(&watched);
                let upgrading = beside(move || {
                    let guard = shared.lock.upgradable_read();
                    match RwLockUpgradableReadGuard::try_upgrade_until(guard, deadline) {
                        Ok(mut guard) => shared.change(&mut guard),
                        Err(guard) => shared.see(&guard),
                    }
                });
                let shared = Arc::clone(&watched);
                let late = beside(move || shared.see(&shared.lock.read()));
                while Instant::now()
                    < deadline - Duration::from_micros(10) + Duration::from_micros(round % 40)
                {
                    give_way();
                }
                drop(reading);
                upgrading.join();
                late.join();
                watched.assert_whole();
            }
        }
    });
}

/// Has five tasks wait in a runtime whose only worker then computes, unlocks, and calls `meanwhile`, which may let them come.
fn beside_waiters_that_cannot_come(wait: fn(&RwLock<i32>, u32), meanwhile: fn(&RwLock<i32>, &dyn Fn())) {
    guarded(|| {
        for lock in [RwLock::new(0), RwLock::writer_first(0)].map(Arc::new) {
            let other = runtime(1);
            let (computes, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let writing = lock.write();
            let waiters = [0, 1, 2, 3, 4].map(|number| {
                let lock = Arc::clone(&lock);
                other.spawn(move || wait(&lock, number))
            });
            let task = {
                let (computes, stop) = (Arc::clone(&computes), Arc::clone(&stop));
                other.spawn(move || {
                    fibra::yield_now();
                    computes.store(true, Ordering::Relaxed);
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                })
            };
            until(|| computes.load(Ordering::Relaxed));
            drop(writing);
            let let_them_come = || stop.store(true, Ordering::Relaxed);
            meanwhile(&lock, &let_them_come);
            let_them_come();
            waiters.into_iter().chain([task]).for_each(|task| task.join().unwrap());
            assert!(lock.try_write().is_some(), "the lock is free and has no waiters");
        }
    });
}

#[test]
fn many_writers_whose_worker_computes_leave_the_lock_to_others() {
    beside_waiters_that_cannot_come(
        |lock, _| *lock.write() += 1,
        |lock, _| {
            for _ in 0..100 {
                *lock.write() += 1;
                assert!(*lock.read() > 0);
                drop(lock.try_upgradable_read().expect("the lock is open"));
            }
        },
    );
}

#[test]
fn many_readers_whose_worker_computes_leave_the_lock_to_others() {
    beside_waiters_that_cannot_come(
        |lock, _| assert!(*lock.read() > 0),
        |lock, _| {
            for _ in 0..100 {
                *lock.try_write().expect("the lock is open") += 1;
                assert!(*lock.read() > 0);
            }
        },
    );
}

#[test]
fn a_timed_attempt_takes_a_lock_that_is_open_at_its_deadline() {
    beside_waiters_that_cannot_come(
        |lock, _| *lock.write() += 1,
        |lock, _| {
            let reading = lock.read();
            thread::scope(|scope| {
                let deadline = Instant::now() + Duration::from_millis(100);
                let attempt = scope.spawn(move || lock.try_write_until(deadline).is_some());
                until(|| door_is_closed(lock) || attempt.is_finished());
                drop(reading);
                let is_in_time = Instant::now() < deadline;
                assert!(attempt.join().unwrap() || !is_in_time);
            });
        },
    );
}

#[test]
fn a_reader_that_competed_closes_the_lock_again_for_the_writer_that_waits() {
    beside_waiters_that_cannot_come(
        |lock, number| match number {
            4 => *lock.write() += 1,
            _ => drop(lock.read()),
        },
        |lock, let_them_come| {
            let reading = lock.read();
            let_them_come();
            until(|| door_is_closed(lock));
            drop(reading);
        },
    );
}

#[test]
fn a_waiter_that_arrivals_overtake_gets_in_soon() {
    guarded(|| {
        let lock = Arc::new(RwLock::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let greedy: Vec<_> = (0..6)
            .map(|_| (Arc::clone(&lock), Arc::clone(&stop)))
            .map(|(lock, stop)| {
                thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        *lock.write() += 1;
                    }
                })
            })
            .collect();
        for _ in 0..50 {
            assert!(lock.try_write_for(Duration::from_secs(5)).is_some());
            assert!(lock.try_read_for(Duration::from_secs(5)).is_some());
        }
        stop.store(true, Ordering::Relaxed);
        greedy.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(lock.try_write().is_some());
    });
}

#[test]
fn a_task_that_is_cancelled_as_it_is_let_in_has_the_lock() {
    in_tasks(|| {
        for watched in Watched::both() {
            for _ in 0..60 {
                let writing = watched.lock.write();
                let inside = Arc::new(AtomicU64::new(0));
                let tasks: Vec<_> = (0..40)
                    .map(|number| (number, Arc::clone(&watched), Arc::clone(&inside)))
                    .map(|(number, watched, inside)| {
                        fibra::spawn(move || {
                            inside.fetch_add(1, Ordering::Relaxed);
                            match number % 2 {
                                0 => watched.change_shielded(),
                                _ => drop(watched.lock.read()),
                            }
                            inside.fetch_sub(1, Ordering::Relaxed);
                            wait::cancellation_point();
                        })
                    })
                    .collect();
                while inside.load(Ordering::Relaxed) < 40 {
                    fibra::yield_now();
                }
                let (first, second) = tasks.split_at(20);
                first.iter().for_each(|task| task.task().cancel());
                drop(writing);
                second.iter().for_each(|task| task.task().cancel());
                tasks.into_iter().for_each(|task| drop(task.join()));
                assert_eq!(inside.load(Ordering::Relaxed), 0, "each one got in");
                watched.assert_whole();
            }
        }
    });
}

impl Watched {
    /// As `change`, without a cancellation point in it.
    fn change_shielded(&self) {
        let mut value = self.lock.write();
        value.0 += 1;
        value.1 += 1;
        self.written.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_lock_may_go_as_soon_as_its_last_user_is_out() {
    guarded(|| {
        for _ in 0..300 {
            let lock = Arc::new(RwLock::new(0));
            let users: Vec<_> = (0..3)
                .map(|number| (number, Arc::clone(&lock)))
                .map(|(number, lock)| {
                    thread::spawn(move || match number {
                        0 => drop(lock.read()),
                        _ => *lock.write() += 1,
                    })
                })
                .collect();
            drop(lock);
            users.into_iter().for_each(|user| user.join().unwrap());
        }
    });
}
