//! Each lock of one holder at a time where much happens at once: tasks and threads together, and waits whose time runs out as
//! the lock comes free.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

use crate::common::{Side, beside, beside_in_a_thread, everywhere, few_or_many, give_way, in_tasks, until};
use crate::exclusive::{Exclusive, Guarded, suite, work};

const LONG: Duration = Duration::from_secs(3600);

suite! {[
    tasks_and_threads_exclude_each_other
    all_waiters_with_time_get_in
    of_many_attempts_at_once_one_succeeds
    one_may_hold_many_at_once
    neighbours_at_a_table_never_eat_at_once
    an_unlock_at_the_moment_of_a_timeout_forgets_no_waiter
    waits_that_time_out_again_and_again_are_not_forgotten
    waits_that_time_out_in_tasks_and_threads_are_not_forgotten
]}

fn tasks_and_threads_exclude_each_other<L: Exclusive>() {
    in_tasks(|| {
        let shared = Guarded::<L>::new();
        let works = |rounds| {
            let shared = Arc::clone(&shared);
            move || work(&shared, rounds)
        };
        let threads = [(); 3].map(|()| beside_in_a_thread(works(200)));
        let tasks = [(); 20].map(|()| beside(works(50)));
        threads.into_iter().chain(tasks).for_each(Side::join);
        assert_eq!(shared.counted(), 3 * 200 + 20 * 50);
    });
}

fn all_waiters_with_time_get_in<L: Exclusive>() {
    const ROUNDS: u64 = 20;
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let count = few_or_many(4, 40);
        for _ in 0..ROUNDS {
            let sides: Vec<_> = (0..count)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    beside(move || {
                        let _guard = shared.lock.try_lock_for(LONG).expect("it comes free in time");
                        shared.count(false);
                    })
                })
                .collect();
            sides.into_iter().for_each(Side::join);
        }
        assert_eq!(shared.counted(), ROUNDS * count as u64);
    });
}

fn of_many_attempts_at_once_one_succeeds<L: Exclusive>() {
    everywhere(|| {
        let count = few_or_many(3, 30);
        for _ in 0..15 {
            let shared = Guarded::<L>::new();
            let [come, tried] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
            let sides: Vec<_> = (0..count)
                .map(|_| {
                    let (shared, come, tried) = (Arc::clone(&shared), Arc::clone(&come), Arc::clone(&tried));
                    beside(move || {
                        come.fetch_add(1, Relaxed);
                        until(|| come.load(Relaxed) == count);
                        let guard = shared.lock.try_lock();
                        tried.fetch_add(1, Relaxed);
                        until(|| tried.load(Relaxed) == count);
                        usize::from(guard.is_some())
                    })
                })
                .collect();
            assert_eq!(sides.into_iter().map(Side::join).sum::<usize>(), 1);
            assert!(shared.lock.try_lock().is_some());
        }
    });
}

fn one_may_hold_many_at_once<L: Exclusive>() {
    everywhere(|| {
        let all: Arc<Vec<_>> = Arc::new((0..64).map(|_| Guarded::<L>::new()).collect());
        let sides: Vec<_> = (0..12)
            .map(|side| {
                let all = Arc::clone(&all);
                beside(move || {
                    let held_by_turns = (0..6).map(|round| {
                        // In the one order that all keep to.
                        let some = all.iter().skip(side).step_by(1 + round % 3);
                        let held: Vec<_> = some.map(|one| (one, one.lock.lock())).collect();
                        give_way();
                        held.iter().for_each(|(one, _)| one.count(false));
                        held.len() as u64
                    });
                    held_by_turns.sum::<u64>()
                })
            })
            .collect();
        let held: u64 = sides.into_iter().map(Side::join).sum();
        assert_eq!(all.iter().map(|one| one.counted()).sum::<u64>(), held);
    });
}

/// A round table with a fork between each two seats.
struct Table<L> {
    forks: Vec<L>,
    eating: Vec<AtomicBool>,
}

impl<L: Exclusive> Table<L> {
    fn new(seats: usize) -> Arc<Self> {
        let forks = (0..seats).map(|_| L::new()).collect();
        Arc::new(Table { forks, eating: (0..seats).map(|_| AtomicBool::new(false)).collect() })
    }

    fn eat(&self, seat: usize) {
        let seats = self.forks.len();
        let (left, right) = ((seat + seats - 1) % seats, (seat + 1) % seats);
        // All begin with the lower one, or each might hold one and wait for the next.
        let [first, second] = [seat.min(right), seat.max(right)];
        let _forks = (self.forks[first].lock(), self.forks[second].lock());
        self.eating[seat].store(true, SeqCst);
        assert!(![left, right].iter().any(|neighbour| self.eating[*neighbour].load(SeqCst)));
        give_way();
        self.eating[seat].store(false, SeqCst);
    }
}

/// Beside tasks some of them are in threads.
fn neighbours_at_a_table_never_eat_at_once<L: Exclusive>() {
    everywhere(|| {
        let seats = few_or_many(5, 40);
        let table = Table::<L>::new(seats);
        let philosophers: Vec<_> = (0..seats)
            .map(|seat| {
                let table = Arc::clone(&table);
                let eats = move || (0..30).for_each(|_| table.eat(seat));
                if seat % 10 == 0 { beside_in_a_thread(eats) } else { beside(eats) }
            })
            .collect();
        philosophers.into_iter().for_each(Side::join);
    });
}

fn an_unlock_at_the_moment_of_a_timeout_forgets_no_waiter<L: Exclusive>() {
    in_tasks(|| {
        let pairs: Vec<_> = (0..100)
            .map(|_| fibra_runtime::spawn(|| (0..80).filter(|_| unlock_as_it_times_out::<L>()).count()))
            .collect();
        let _taken: usize = pairs.into_iter().map(|pair| pair.join().unwrap()).sum();
    });
}

/// True if the attempt had the lock.
fn unlock_as_it_times_out<L: Exclusive>() -> bool {
    let shared = Guarded::<L>::new();
    let timeout = Duration::from_micros(300);
    let guard = shared.lock.lock();
    let timed = Arc::clone(&shared);
    let attempt = fibra_runtime::spawn(move || {
        let taken = timed.lock.try_lock_for(timeout);
        if taken.is_some() {
            timed.count(true);
        }
        taken.is_some()
    });
    let behind = Arc::clone(&shared);
    let patient = fibra_runtime::spawn(move || {
        let _guard = behind.lock.lock();
        behind.count(true);
    });
    fibra_runtime::sleep(timeout);
    drop(guard);
    let taken = attempt.join().unwrap();
    patient.join().unwrap();
    assert!(shared.lock.try_lock().is_some(), "all have gone");
    assert_eq!(shared.counted(), 1 + u64::from(taken));
    taken
}

fn waits_that_time_out_again_and_again_are_not_forgotten<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let sides: Vec<_> = (0..6_u64)
            .map(|side| {
                let shared = Arc::clone(&shared);
                beside(move || hurried(&shared, side, 400))
            })
            .collect();
        work(&shared, 400);
        let taken: u64 = sides.into_iter().map(|side| side.join()).sum();
        assert_eq!(shared.counted(), taken + 400);
    });
}

/// Attempts of many lengths; how many had the lock.
fn hurried<L: Exclusive>(shared: &Guarded<L>, side: u64, rounds: u64) -> u64 {
    let taken = (0..rounds).filter(|round| {
        let timeout = Duration::from_nanos((round * 7919 + side * 104_729) % 20_000);
        let guard = shared.lock.try_lock_for(timeout);
        if guard.is_some() {
            shared.count(round.is_multiple_of(4));
        }
        guard.is_some()
    });
    taken.count() as u64
}

fn waits_that_time_out_in_tasks_and_threads_are_not_forgotten<L: Exclusive>() {
    in_tasks(|| {
        let shared = Guarded::<L>::new();
        let patient = || {
            let shared = Arc::clone(&shared);
            move || {
                work(&shared, 300);
                300
            }
        };
        let hurried = |side, rounds| {
            let shared = Arc::clone(&shared);
            move || hurried(&shared, side, rounds)
        };
        let mut sides = vec![
            beside_in_a_thread(patient()),
            beside_in_a_thread(hurried(0, 500)),
            beside_in_a_thread(hurried(1, 500)),
            beside(patient()),
        ];
        sides.extend((2..12).map(|side| beside(hurried(side, 200))));
        let taken: u64 = sides.into_iter().map(Side::join).sum();
        assert_eq!(shared.counted(), taken);
    });
}
