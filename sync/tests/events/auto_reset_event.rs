//! What the auto-reset event promises.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    ENOUGH, Side, beside, beside_in_a_thread, beside_runtimes, everywhere, few_or_many, give_way, in_tasks,
    pause, rounds, until,
};
use crate::future::{block_on, poll};
use fibra_runtime as fibra;
use fibra_sync::AutoResetEvent;

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_set_before_the_wait_is_kept_once() {
    everywhere(|| {
        let event = AutoResetEvent::new(false);
        event.set();
        event.set();
        assert!(event.is_set());
        event.wait();
        assert!(!event.is_set());
        assert!(!event.wait_timeout(SHORT), "two sets without a wait are one");
    });
}

#[test]
fn it_may_start_set() {
    everywhere(|| {
        let gates = [AutoResetEvent::new(true), AutoResetEvent::new(false)];
        assert!(gates[0].try_wait());
        assert!(!gates[0].try_wait() && !gates[1].try_wait());
    });
}

#[test]
fn each_set_lets_one_through() {
    everywhere(|| {
        let (event, through) = (Arc::new(AutoResetEvent::new(false)), Arc::new(AtomicUsize::new(0)));
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let (event, through) = (Arc::clone(&event), Arc::clone(&through));
                beside(move || {
                    event.wait();
                    through.fetch_add(1, SeqCst);
                })
            })
            .collect();
        pause();
        for expected in 1..=4 {
            event.set();
            while through.load(SeqCst) < expected {
                give_way();
            }
            pause();
            assert_eq!(through.load(SeqCst), expected);
        }
        waiters.into_iter().for_each(Side::join);
        assert!(!event.is_set());
    });
}

#[test]
fn waiters_are_let_through_in_the_order_in_which_they_came() {
    everywhere(|| {
        let (event, log) = (Arc::new(AutoResetEvent::new(false)), Arc::new(Mutex::new(Vec::new())));
        let waiters: Vec<_> = (0..5)
            .map(|name| {
                let (event, log) = (Arc::clone(&event), Arc::clone(&log));
                let side = beside(move || {
                    event.wait();
                    log.lock().unwrap().push(name);
                    event.set();
                });
                pause();
                side
            })
            .collect();
        event.set();
        waiters.into_iter().for_each(Side::join);
        assert_eq!(*log.lock().unwrap(), [0, 1, 2, 3, 4]);
        assert!(event.is_set());
    });
}

#[test]
fn a_set_with_a_waiter_cannot_be_taken_away() {
    in_tasks(|| {
        let event = Arc::new(AutoResetEvent::new(false));
        let theirs = Arc::clone(&event);
        let waiter = fibra::spawn(move || theirs.wait_timeout(LONG));
        pause();
        event.set();
        assert!(!event.try_wait() && !event.is_set(), "it was handed over");
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_reset_takes_back_an_unused_set() {
    everywhere(|| {
        let event = AutoResetEvent::new(true);
        event.reset();
        event.reset();
        assert!(!event.is_set() && !event.wait_timeout(Duration::ZERO));
        event.set();
        assert!(event.wait_deadline(Instant::now()), "it need not wait");
    });
}

#[test]
fn a_wait_that_times_out_uses_no_set() {
    everywhere(|| {
        let event = AutoResetEvent::new(false);
        let at = Instant::now();
        assert!(!event.wait_timeout(SHORT) && at.elapsed() >= SHORT);
        assert!(!event.wait_deadline(Instant::now() + SHORT));
        event.set();
        assert!(event.is_set());
        assert!(event.wait_timeout(Duration::MAX));
    });
}

#[test]
fn a_task_that_is_cancelled_uses_no_set() {
    in_tasks(|| {
        let event = Arc::new(AutoResetEvent::new(false));
        let theirs = Arc::clone(&event);
        let waiter = fibra::spawn(move || theirs.wait());
        pause();
        waiter.task().cancel();
        assert!(waiter.join().unwrap_err().is_cancelled());
        event.set();
        assert!(event.is_set());
    });
}

#[test]
fn a_task_that_is_cancelled_before_the_wait_does_not_wait() {
    in_tasks(|| {
        let event = Arc::new(AutoResetEvent::new(true));
        let theirs = Arc::clone(&event);
        let task = fibra::spawn(move || {
            fibra::task::current().cancel();
            theirs.wait();
        });
        assert!(task.join().unwrap_err().is_cancelled());
        assert!(event.is_set());
    });
}

#[test]
fn writes_before_the_set_are_seen_after_the_wait() {
    everywhere(|| {
        let shared = Arc::new((AutoResetEvent::new(false), AutoResetEvent::new(true), AtomicUsize::new(0)));
        let theirs = Arc::clone(&shared);
        let writer = beside(move || {
            for value in 1..=500 {
                theirs.1.wait();
                theirs.2.store(value, Relaxed);
                theirs.0.set();
            }
        });
        for value in 1..=500 {
            shared.0.wait();
            assert_eq!(shared.2.load(Relaxed), value);
            shared.1.set();
        }
        writer.join();
    });
}

#[test]
fn two_take_turns_between_a_task_and_a_thread() {
    beside_runtimes(|runtime| {
        let turns = Arc::new([const { AutoResetEvent::new(false) }; 2]);
        let theirs = Arc::clone(&turns);
        let thread = thread::spawn(move || {
            for _ in 0..3000 {
                theirs[0].wait();
                theirs[1].set();
            }
        });
        runtime.run(|| {
            for _ in 0..3000 {
                turns[0].set();
                turns[1].wait();
            }
        });
        thread.join().unwrap();
    });
}

/// Each one kicks the next, after work of random length.
#[test]
fn kicks_go_round_and_none_is_lost() {
    everywhere(|| {
        const PARTIES: usize = 4;
        let events: Arc<[_; PARTIES]> = Arc::new([const { AutoResetEvent::new(false) }; PARTIES]);
        let sides: Vec<_> = (0..PARTIES)
            .map(|party| {
                let events = Arc::clone(&events);
                beside(move || {
                    let mut dice = party * 7919 + 1;
                    for _ in 0..400 {
                        events[party].wait();
                        dice = dice.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                        (0..dice / 65_536 % 4).for_each(|_| give_way());
                        events[(party + 1) % PARTIES].set();
                    }
                })
            })
            .collect();
        events[0].set();
        sides.into_iter().for_each(Side::join);
        assert!(events[0].is_set(), "the last kick came back to the first");
    });
}

/// The last of a round lets all others into the next.
#[test]
fn the_last_of_each_round_lets_all_others_into_the_next() {
    everywhere(|| {
        let parties = few_or_many(4, 20);
        let events: Arc<Vec<_>> = Arc::new((0..parties).map(|_| AutoResetEvent::new(false)).collect());
        let left = Arc::new(AtomicUsize::new(0));
        let sides: Vec<_> = (0..parties)
            .map(|party| {
                let (events, left) = (Arc::clone(&events), Arc::clone(&left));
                beside(move || {
                    let mut leads = party == 0;
                    for round in 0..300 {
                        if leads {
                            left.store(parties, Relaxed);
                            let others = (0..parties).filter(|&other| other != party);
                            others.for_each(|other| events[other].set());
                        } else {
                            events[party].wait();
                        }
                        let before = left.fetch_sub(1, Relaxed);
                        assert!(before > 0, "let in twice");
                        leads = before == 1;
                        (0..(party * 7 + round * 13) % 4).for_each(|_| give_way());
                    }
                })
            })
            .collect();
        sides.into_iter().for_each(Side::join);
        assert!(events.iter().all(|event| !event.is_set()));
    });
}

/// The later of two sets may find the event set by the other one. It is a set all the same: what was done before it is seen.
#[test]
fn writes_before_two_sets_are_seen() {
    struct Round {
        event: AutoResetEvent,
        published: [AtomicBool; 2],
        come: AtomicUsize,
        /// Written before all have come.
        is_last: AtomicBool,
    }
    impl Round {
        fn come(&self) {
            self.come.fetch_add(1, SeqCst);
            until(|| self.come.load(SeqCst) == 3);
        }
    }
    everywhere(|| {
        let round = || Round {
            event: AutoResetEvent::new(false),
            published: Default::default(),
            come: Default::default(),
            is_last: Default::default(),
        };
        let rounds: Arc<Vec<_>> = Arc::new((0..800).map(|_| round()).collect());
        let publishes = |number: usize| {
            let rounds = Arc::clone(&rounds);
            move || {
                for round in rounds.iter() {
                    round.come();
                    round.published[number].store(true, Relaxed);
                    round.event.set();
                    if round.is_last.load(Relaxed) {
                        break;
                    }
                }
            }
        };
        let publishers = [beside(publishes(0)), beside_in_a_thread(publishes(1))];
        let begun = Instant::now();
        for round in rounds.iter() {
            // To meet takes time slices where others are busy.
            let is_last = begun.elapsed() >= ENOUGH;
            round.is_last.store(is_last, Relaxed);
            round.come();
            let mut found = 0;
            while found < 2 {
                round.event.wait();
                found += round.published.iter().filter(|published| published.swap(false, Relaxed)).count();
            }
            if is_last {
                break;
            }
        }
        publishers.into_iter().for_each(Side::join);
    });
}

#[test]
fn a_waiter_that_looks_again_after_each_set_misses_no_change() {
    const EACH: usize = 400;
    everywhere(|| {
        let shared = Arc::new((AutoResetEvent::new(false), AtomicUsize::new(0)));
        let count = few_or_many(3, 20);
        let changers: Vec<_> = (0..count)
            .map(|number| {
                let shared = Arc::clone(&shared);
                let changes = move || {
                    for round in 0..EACH {
                        shared.1.fetch_add(1, Relaxed);
                        shared.0.set();
                        if round % 16 == 0 {
                            give_way();
                        }
                    }
                };
                if number % 10 == 0 { beside_in_a_thread(changes) } else { beside(changes) }
            })
            .collect();
        while shared.1.load(Relaxed) < count * EACH {
            shared.0.wait();
        }
        changers.into_iter().for_each(Side::join);
    });
}

#[test]
fn a_burst_of_sets_lets_through_one_at_least_and_no_more_than_there_were() {
    const SETS: usize = 5000;
    everywhere(|| {
        let shared = Arc::new((AutoResetEvent::new(false), AtomicUsize::new(0), AtomicBool::new(false)));
        let theirs = Arc::clone(&shared);
        let waiter = beside(move || {
            let (event, through, is_over) = &*theirs;
            event.wait();
            while !is_over.load(SeqCst) {
                through.fetch_add(1, SeqCst);
                event.wait();
            }
        });
        let (event, through, is_over) = &*shared;
        (0..SETS).for_each(|_| event.set());
        until(|| through.load(SeqCst) > 0);
        is_over.store(true, SeqCst);
        event.set();
        waiter.join();
        assert!(through.load(SeqCst) <= SETS);
    });
}

#[test]
fn a_future_waits_and_passes_on() {
    everywhere(|| {
        let event = AutoResetEvent::new(true);
        block_on(event.wait_async());
        let woken = [Arc::default(), Arc::default()];
        let mut first = Box::pin(event.wait_async());
        let mut second = pin!(event.wait_async());
        assert!(
            poll(first.as_mut(), &woken[0]).is_pending() && poll(second.as_mut(), &woken[1]).is_pending()
        );
        event.set();
        assert_eq!((woken[0].times(), woken[1].times()), (1, 0));
        drop(first);
        assert_eq!(woken[1].times(), 1);
        assert!(poll(second.as_mut(), &woken[1]).is_ready());
        assert!(!event.is_set());
    });
}

/// Waits with timeouts about as long as the sets are apart; how many were let through.
fn timed_waits(event: &AutoResetEvent, rounds: usize, seed: usize) -> usize {
    let timeout = |round| Duration::from_micros(((round * 7 + seed * 13) % 40) as u64);
    (0..rounds).filter(|&round| event.wait_timeout(timeout(round))).count()
}

/// Sets as often as is allowed, up to so many times: one for each that was used, or is kept.
fn sets(event: &AutoResetEvent, most: usize) -> usize {
    rounds(most)
        .filter(|_| {
            give_way();
            let fresh = !event.is_set();
            if fresh {
                event.set();
            }
            fresh
        })
        .count()
}

#[test]
fn set_and_timed_out_at_once_loses_no_set() {
    everywhere(|| {
        let event = Arc::new(AutoResetEvent::new(false));
        let waiters: Vec<_> = (0..6)
            .map(|seed| {
                let event = Arc::clone(&event);
                beside(move || timed_waits(&event, 800, seed))
            })
            .collect();
        // The only setter: a set that finds the event not set is never swallowed.
        let given = sets(&event, 3000);
        let used: usize = waiters.into_iter().map(Side::join).sum();
        assert_eq!(given, used + usize::from(event.is_set()));
    });
}

#[test]
fn set_and_timed_out_at_once_loses_no_set_between_tasks_and_threads() {
    beside_runtimes(|runtime| {
        let (event, used, given) = (AutoResetEvent::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|threads| {
            threads.spawn(|| given.fetch_add(sets(&event, 4000), SeqCst));
            for seed in 0..2 {
                let (event, used) = (&event, &used);
                threads.spawn(move || used.fetch_add(timed_waits(event, 1500, seed), SeqCst));
            }
            runtime.run(|| {
                fibra::scope(|tasks| {
                    for seed in 2..6 {
                        let (event, used) = (&event, &used);
                        tasks.spawn(move || used.fetch_add(timed_waits(event, 1500, seed), SeqCst));
                    }
                });
            });
        });
        assert_eq!(given.load(SeqCst), used.load(SeqCst) + usize::from(event.is_set()));
    });
}

#[test]
fn set_and_cancelled_at_once_loses_no_set() {
    in_tasks(|| {
        let event = Arc::new(AutoResetEvent::new(false));
        for round in 0..1500 {
            let used = Arc::new(AtomicUsize::new(0));
            let waiters: Vec<_> = (0..2)
                .map(|_| {
                    let (event, used) = (Arc::clone(&event), Arc::clone(&used));
                    fibra::spawn(move || {
                        event.wait();
                        used.fetch_add(1, SeqCst);
                    })
                })
                .collect();
            (0..round % 4).for_each(|_| fibra::yield_now());
            let victim = waiters[0].task().clone();
            let canceller = fibra::spawn(move || victim.cancel());
            if round % 2 == 0 {
                fibra::yield_now();
            }
            event.set();
            canceller.join().unwrap();
            let mut waiters = waiters.into_iter();
            let cancelled = waiters.next().unwrap().join().is_err();
            // If the first got the set, the second one waits for another.
            if !cancelled {
                event.set();
            }
            waiters.next().unwrap().join().unwrap();
            assert_eq!(used.load(SeqCst), 2 - usize::from(cancelled));
            assert!(!event.is_set());
        }
    });
}

#[test]
fn it_says_what_it_is() {
    static GATE: AutoResetEvent = AutoResetEvent::new(true);
    assert_eq!(format!("{GATE:?}"), "AutoResetEvent { set: true, .. }");
    assert!(size_of::<AutoResetEvent>() <= 24);
}

fn _shared_and_sent(event: &AutoResetEvent) {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn sent<T: Send>(_: T) {}
    all::<AutoResetEvent>();
    sent(event.wait_async());
}

#[test]
fn a_reset_takes_the_set_of_a_future_that_is_dropped_later() {
    everywhere(|| {
        let event = AutoResetEvent::new(false);
        let served = || {
            let mut wait = Box::pin(event.wait_async());
            assert!(poll(wait.as_mut(), &Arc::default()).is_pending());
            event.set();
            wait
        };
        let wait = served();
        event.reset();
        drop(wait);
        assert!(!event.is_set(), "the reset has taken the set");

        // A waiter that came before the reset would have had it, a later one not.
        let wait = served();
        let [early, late] = [Arc::default(), Arc::default()];
        let mut first = Box::pin(event.wait_async());
        assert!(poll(first.as_mut(), &early).is_pending());
        event.reset();
        let mut second = Box::pin(event.wait_async());
        assert!(poll(second.as_mut(), &late).is_pending());
        drop(wait);
        assert_eq!((early.times(), late.times()), (1, 0));
        drop(first);
        assert_eq!((late.times(), event.is_set()), (0, false));
        event.set();
        assert!(poll(second.as_mut(), &late).is_ready());
    });
}

#[test]
fn a_reset_does_not_undo_the_set_of_a_task_that_was_served_and_cancelled() {
    in_tasks(|| {
        let event = Arc::new(AutoResetEvent::new(false));
        for _ in 0..100 {
            let served = Arc::clone(&event);
            let waiter = fibra::spawn(move || served.wait());
            fibra::yield_now();
            event.set();
            waiter.cancel();
            event.reset();
            // It was served, or cancelled before: neither sets the event again.
            let _ = waiter.join();
            assert!(!event.is_set());
        }
    });
}
