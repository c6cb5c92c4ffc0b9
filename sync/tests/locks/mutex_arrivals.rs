//! An unlock that meets the first arrival at a mutex for which no task has waited lately.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::common::{Dice, Side, beside, everywhere, give_way, meet};
use fibra_sync::{Condvar, Mutex};

const ROUNDS: usize = 200;

/// Locks a mutex and unlocks it once as `arrival` comes, which nothing else would wake. `arrival` says whether it got in.
fn unlock_as_one_comes(arrival: fn(&Mutex<usize>, &mut Dice) -> bool) {
    let (mutex, came) = (Arc::new(Mutex::new(0)), Arc::new(AtomicUsize::new(0)));
    let (theirs, comes) = (Arc::clone(&mutex), Arc::clone(&came));
    let other = beside(move || {
        let mut dice = Dice::new(1);
        let got_in = (0..ROUNDS).filter(|round| {
            meet(&comes, 2 * round);
            let got_in = arrival(&theirs, &mut dice);
            meet(&comes, 2 * round + 1);
            got_in
        });
        got_in.count()
    });
    let mut dice = Dice::new(2);
    for round in 0..ROUNDS {
        let guard = mutex.lock();
        meet(&came, 2 * round);
        linger(&mut dice);
        drop(guard);
        meet(&came, 2 * round + 1);
    }
    assert_eq!(*mutex.lock(), other.join());
}

/// Spins for up to some microseconds, beyond the time for which an arrival backs off.
fn linger(dice: &mut Dice) {
    (0..dice.throw(1200)).for_each(|_| spin_loop());
}

#[test]
fn an_unlock_wakes_an_arrival() {
    everywhere(|| {
        unlock_as_one_comes(|mutex, dice| {
            linger(dice);
            *mutex.lock() += 1;
            true
        });
    });
}

#[test]
fn an_unlock_meets_an_arrival_at_its_deadline() {
    everywhere(|| {
        unlock_as_one_comes(|mutex, dice| {
            let time = Duration::from_micros(dice.throw(60));
            let taken = mutex.try_lock_for(time);
            taken.is_some_and(|mut guard| {
                *guard += 1;
                true
            })
        });
    });
}

#[test]
fn an_unlock_wakes_one_of_many_and_that_one_the_next() {
    everywhere(|| {
        let mutex = Arc::new(Mutex::new(0));
        for _ in 0..ROUNDS / 4 {
            let guard = mutex.lock();
            let others = [(); 8].map(|()| {
                let mutex = Arc::clone(&mutex);
                beside(move || *mutex.lock() += 1)
            });
            give_way();
            drop(guard);
            others.into_iter().for_each(Side::join);
        }
        assert_eq!(*mutex.lock(), ROUNDS / 4 * 8);
    });
}

#[test]
fn a_notification_by_the_owner_and_by_others_finds_its_waiter() {
    everywhere(|| {
        let pair = Arc::new((Mutex::new(0), Condvar::new()));
        let theirs = Arc::clone(&pair);
        let other = beside(move || {
            for round in 1..=ROUNDS {
                let mut count = theirs.0.lock();
                theirs.1.wait_while(&mut count, |count| *count < 2 * round - 1);
                *count += 1;
                drop(count);
                theirs.1.notify_one();
            }
        });
        for round in 1..=ROUNDS {
            *pair.0.lock() += 1;
            if round % 2 == 0 {
                let _guard = pair.0.lock();
                pair.1.notify_one();
            } else {
                pair.1.notify_one();
            }
            let mut count = pair.0.lock();
            pair.1.wait_while(&mut count, |count| *count < 2 * round);
        }
        other.join();
    });
}
