//! A mutex for which nobody has waited for long is unlocked by a plain store. The first who comes then has to be met by that.

mod common;

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use common::{Dice, Side, beside, everywhere, give_way, meet};
use fibra_sync::{Condvar, Mutex};

/// More unlocks than it takes.
const LONG: usize = 17_000;
const ROUNDS: usize = 200;

fn grow_calm(mutex: &Mutex<usize>) {
    for _ in 0..LONG {
        *mutex.lock() += 0;
    }
}

/// A calm mutex is locked, and unlocked once as `comer` comes, which nothing else would wake. The rounds in which it got in.
fn unlock_as_one_comes(comer: fn(&Mutex<usize>, &mut Dice) -> bool) {
    let (mutex, came) = (Arc::new(Mutex::new(0)), Arc::new(AtomicUsize::new(0)));
    let (theirs, comes) = (Arc::clone(&mutex), Arc::clone(&came));
    let other = beside(move || {
        let mut dice = Dice::new(1);
        let got_in = (0..ROUNDS).filter(|round| {
            meet(&comes, 2 * round);
            let got_in = comer(&theirs, &mut dice);
            meet(&comes, 2 * round + 1);
            got_in
        });
        got_in.count()
    });
    let mut dice = Dice::new(2);
    for round in 0..ROUNDS {
        grow_calm(&mutex);
        let guard = mutex.lock();
        meet(&came, 2 * round);
        linger(&mut dice);
        drop(guard);
        meet(&came, 2 * round + 1);
    }
    assert_eq!(*mutex.lock(), other.join());
}

/// For up to some microseconds, beyond the time for which one who comes backs off.
fn linger(dice: &mut Dice) {
    (0..dice.throw(1200)).for_each(|_| spin_loop());
}

#[test]
fn its_unlock_wakes_who_comes_meanwhile() {
    everywhere(|| {
        unlock_as_one_comes(|mutex, dice| {
            linger(dice);
            *mutex.lock() += 1;
            true
        });
    });
}

#[test]
fn its_unlock_leaves_who_has_no_time() {
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
fn its_unlock_wakes_one_of_many_who_wakes_the_next() {
    everywhere(|| {
        let mutex = Arc::new(Mutex::new(0));
        for _ in 0..ROUNDS / 4 {
            grow_calm(&mutex);
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
fn a_notification_of_its_owner_and_of_others_finds_it_calm() {
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
            grow_calm(&pair.0);
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
