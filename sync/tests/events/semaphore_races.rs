//! Permits of a semaphore that come as their waiters do, as these leave, or as others take them.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::common::{
    Side, beside, beside_in_a_thread, everywhere, few_or_many, give_way, guarded, in_tasks, until,
};
use crate::future::poll;
use fibra_runtime as fibra;
use fibra_sync::{Mutex, Semaphore};

/// Takes permits with timeouts that end about when they are served; the rounds of one waiter.
fn timed_waits(semaphore: &Semaphore, rounds: usize, seed: usize) -> usize {
    let mut got = 0;
    for round in 0..rounds {
        let timeout = Duration::from_micros(((round * 7 + seed * 13) % 50) as u64);
        if let Ok(permit) = semaphore.acquire_many_timeout(1 + (round + seed) % 3, timeout) {
            got += 1;
            give_way();
            drop(permit);
        }
    }
    got
}

#[test]
fn served_and_timed_out_at_once_loses_no_permit() {
    everywhere(|| {
        let semaphore = Arc::new(Semaphore::new(3));
        let sides: Vec<_> = (0..8)
            .map(|seed| {
                let semaphore = Arc::clone(&semaphore);
                beside(move || timed_waits(&semaphore, 800, seed))
            })
            .collect();
        let got: usize = sides.into_iter().map(Side::join).sum();
        assert!(got > 0);
        assert_eq!(semaphore.available_permits(), 3);
        assert_eq!(semaphore.try_acquire_many(3).unwrap().num_permits(), 3, "the queue is empty");
    });
}

#[test]
fn served_and_timed_out_at_once_loses_no_permit_between_tasks_and_threads() {
    in_tasks(|| {
        let semaphore = Arc::new(Semaphore::new(3));
        let sides: Vec<_> = (0..10)
            .map(|seed| {
                let semaphore = Arc::clone(&semaphore);
                let waits = move || timed_waits(&semaphore, 1000, seed);
                if seed < 2 { beside_in_a_thread(waits) } else { beside(waits) }
            })
            .collect();
        let got: usize = sides.into_iter().map(Side::join).sum();
        assert!(got > 0);
        assert_eq!(semaphore.try_acquire_many(3).unwrap().num_permits(), 3);
    });
}

#[test]
fn served_and_cancelled_at_once_loses_no_permit() {
    in_tasks(|| {
        let semaphore = Arc::new(Semaphore::new(2));
        let mut passed = 0;
        for round in 0..1500 {
            let all = semaphore.acquire_many(2).unwrap();
            let waiters: Vec<_> = [1, 2, 1]
                .into_iter()
                .map(|count| {
                    let semaphore = Arc::clone(&semaphore);
                    fibra::spawn(move || drop(semaphore.acquire_many(count)))
                })
                .collect();
            (0..round % 4).for_each(|_| fibra::yield_now());
            let victim = waiters[round % 3].task().clone();
            let canceller = fibra::spawn(move || victim.cancel());
            if round % 2 == 0 {
                fibra::yield_now();
            }
            drop(all);
            canceller.join().unwrap();
            passed += waiters.into_iter().filter_map(|waiter| waiter.join().ok()).count();
            assert_eq!(semaphore.available_permits(), 2);
        }
        assert!(passed >= 3000);
    });
}

#[test]
fn served_and_dropped_at_once_loses_no_permit() {
    guarded(|| {
        let semaphore = Semaphore::new(1);
        thread::scope(|threads| {
            for seed in 0..3_usize {
                let semaphore = &semaphore;
                threads.spawn(move || {
                    let woken = Arc::default();
                    for round in 0..4000 {
                        let mut future = pin!(semaphore.acquire_async());
                        for _ in 0..(round + seed) % 4 {
                            if poll(future.as_mut(), &woken).is_ready() {
                                break;
                            }
                            thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!(semaphore.available_permits(), 1);
        assert!(semaphore.try_acquire().is_ok(), "the queue is empty");
    });
}

#[test]
fn an_attempt_never_fails_while_there_are_permits_enough() {
    everywhere(|| {
        // As many as can be out at once.
        let count = few_or_many(4, 30);
        let semaphore = Arc::new(Semaphore::new(count));
        let sides: Vec<_> = (0..count)
            .map(|_| {
                let semaphore = Arc::clone(&semaphore);
                beside(move || {
                    for round in 0..2000 {
                        let _permit = semaphore.try_acquire().expect("one is left");
                        if round % 64 == 0 {
                            give_way();
                        }
                    }
                })
            })
            .collect();
        sides.into_iter().for_each(Side::join);
        assert_eq!(semaphore.available_permits(), count);
    });
}

#[test]
fn of_many_waiters_some_are_served_one_by_one_and_the_rest_at_once() {
    everywhere(|| {
        let count = few_or_many(20, 200);
        let (semaphore, served) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        // Most of them are still on their way when the first is served.
        let tasks: Vec<_> = (0..count)
            .map(|_| {
                let (semaphore, served) = (Arc::clone(&semaphore), Arc::clone(&served));
                beside(move || {
                    semaphore.acquire().unwrap().forget();
                    served.fetch_add(1, SeqCst);
                })
            })
            .collect();
        for number in 1..=count / 2 {
            semaphore.add_permits(1);
            until(|| served.load(SeqCst) >= number);
            assert_eq!(served.load(SeqCst), number);
        }
        semaphore.add_permits(count - count / 2);
        tasks.into_iter().for_each(Side::join);
        assert_eq!((served.load(SeqCst), semaphore.available_permits()), (count, 0));
    });
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Philosopher {
    Thinks,
    IsHungry,
    Eats,
}

/// A round table where a hungry philosopher waits, at a semaphore of its own, until neither neighbour eats.
struct Table {
    seats: Mutex<Vec<Philosopher>>,
    meals: Vec<Semaphore>,
}

impl Table {
    fn neighbours(&self, seat: usize) -> [usize; 2] {
        let seats = self.meals.len();
        [(seat + seats - 1) % seats, (seat + 1) % seats]
    }

    fn serve(&self, seats: &mut [Philosopher], seat: usize) {
        let is_alone = self.neighbours(seat).iter().all(|&neighbour| seats[neighbour] != Philosopher::Eats);
        if seats[seat] == Philosopher::IsHungry && is_alone {
            seats[seat] = Philosopher::Eats;
            self.meals[seat].add_permits(1);
        }
    }

    fn eat(&self, seat: usize) {
        let sit = || {
            let mut seats = self.seats.lock();
            seats[seat] = Philosopher::IsHungry;
            self.serve(&mut seats, seat);
        };
        sit();
        self.meals[seat].acquire().unwrap().forget();
        give_way();
        let mut seats = self.seats.lock();
        assert!(self.neighbours(seat).iter().all(|&neighbour| seats[neighbour] != Philosopher::Eats));
        assert_eq!(std::mem::replace(&mut seats[seat], Philosopher::Thinks), Philosopher::Eats);
        self.neighbours(seat).iter().for_each(|&neighbour| self.serve(&mut seats, neighbour));
    }
}

/// Beside tasks some of them are in threads.
#[test]
fn each_waiter_at_a_semaphore_of_its_own_is_served_in_its_turn() {
    everywhere(|| {
        let count = few_or_many(5, 40);
        let seats = Mutex::new(vec![Philosopher::Thinks; count]);
        let table = Arc::new(Table { seats, meals: (0..count).map(|_| Semaphore::new(0)).collect() });
        let philosophers: Vec<_> = (0..count)
            .map(|seat| {
                let table = Arc::clone(&table);
                let eats = move || (0..100).for_each(|_| table.eat(seat));
                if seat % 10 == 0 { beside_in_a_thread(eats) } else { beside(eats) }
            })
            .collect();
        philosophers.into_iter().for_each(Side::join);
        assert!(table.meals.iter().all(|meals| meals.available_permits() == 0));
    });
}
