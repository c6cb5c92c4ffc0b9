//! The promises of a select's other arms that are no channels, and of arms that mix.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Side, beside, everywhere, give_way, guarded, pause, runtime};
use fibra_runtime::CancelToken;
use fibra_sync::channel::{self, Select};
use fibra_sync::{
    AutoResetEvent, CountdownEvent, ManualResetEvent, Semaphore, WaitGroup, select, select_biased,
};

const SHORT: Duration = Duration::from_millis(5);

/// Long, for a wait that is to end before.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn counts_let_selects_through_at_zero() {
    everywhere(|| {
        let (event, group) = (Arc::new(CountdownEvent::new(2)), Arc::new(WaitGroup::new()));
        let busy = Arc::clone(&group).worker_owned();
        select! {
            wait(event) => panic!("two signals are missing"),
            wait(group) => panic!("one is busy"),
            default => {}
        }
        let (signals, seen) = (Arc::clone(&event), Arc::new(ManualResetEvent::new(false)));
        let through = Arc::clone(&seen);
        let worker = beside(move || {
            pause();
            signals.signal();
            signals.signal();
            // Before that the select may not have begun: of two that are at zero it would choose either.
            through.wait();
            pause();
            drop(busy);
        });
        select! {
            wait(event) => seen.set(),
            wait(group) => panic!("one is busy"),
        }
        select! {
            wait(group) => {}
            default(LONG) => panic!("it was done"),
        }
        worker.join();
    });
}

#[test]
fn a_semaphore_gives_the_body_a_permit() {
    everywhere(|| {
        let semaphore = Semaphore::new(2);
        let kept = select! {
            wait(semaphore) -> permit => permit.unwrap(),
            default => panic!("two were free"),
        };
        select! {
            wait(semaphore) => assert_eq!(semaphore.available_permits(), 0),
            default => panic!("one was free"),
        }
        assert_eq!(semaphore.available_permits(), 1);
        let other = semaphore.acquire().unwrap();
        select! {
            wait(semaphore) => panic!("none is free"),
            default(SHORT) => {}
        }
        drop((kept, other));
        assert_eq!(semaphore.available_permits(), 2);
    });
}

#[test]
fn a_select_leaves_no_waiter_behind_it_asleep() {
    everywhere(|| {
        // A big request, a select behind it, and a small one behind both.
        let semaphore = Arc::new(Semaphore::new(1));
        let behind = Arc::clone(&semaphore);
        let big = {
            let semaphore = Arc::clone(&semaphore);
            beside(move || assert!(semaphore.acquire_many_timeout(2, 4 * SHORT).is_err()))
        };
        pause();
        let small = beside(move || {
            pause();
            drop(behind.acquire());
        });
        select! {
            wait(semaphore) => {}
            default(2 * SHORT) => {}
        }
        small.join();
        big.join();
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn a_token_lets_all_selects_through() {
    everywhere(|| {
        let token = CancelToken::new();
        select! {
            wait(token) => panic!("it is not cancelled"),
            default(SHORT) => {}
        }
        let waiters: Vec<_> = (0..10)
            .map(|_| {
                let token = token.child_token();
                beside(move || {
                    select! {
                        wait(token) => {}
                        default(LONG) => panic!("it was cancelled"),
                    }
                })
            })
            .collect();
        pause();
        token.cancel();
        waiters.into_iter().for_each(Side::join);
    });
}

#[test]
fn arms_mix() {
    everywhere(|| {
        let (event, gate) = (AutoResetEvent::new(false), ManualResetEvent::new(false));
        let (full, received) = channel::bounded(1);
        full.send(1).unwrap();
        let mut seen = Vec::new();
        for round in 0..4 {
            match round {
                0 => event.set(),
                1 => drop(received.recv()),
                2 => gate.set(),
                _ => gate.reset(),
            }
            select_biased! {
                wait(event) => seen.push("event"),
                send(full, 2) -> sent => seen.push(if sent.is_ok() { "sent" } else { "failed" }),
                wait(gate) => seen.push("gate"),
                recv(channel::after(SHORT)) -> _ => seen.push("clock"),
            }
        }
        assert_eq!(seen, ["event", "sent", "gate", "clock"]);
    });
}

#[test]
fn a_list_of_operations_waits_for_events() {
    everywhere(|| {
        let (event, semaphore) = (AutoResetEvent::new(false), Semaphore::new(0));
        let gate = ManualResetEvent::new(false);
        let mut select = Select::new();
        let (first, second, third) = (select.wait(&event), select.wait(&semaphore), select.wait(&gate));
        assert!(select.try_select().is_err());
        assert!(select.select_timeout(SHORT).is_err());

        event.set();
        let operation = select.select();
        assert_eq!(operation.index(), first);
        operation.wait(&event);
        assert!(!event.is_set());

        semaphore.add_permits(1);
        let operation = select.select();
        assert_eq!(operation.index(), second);
        let permit = operation.wait(&semaphore).unwrap();
        assert_eq!(semaphore.available_permits(), 0);
        permit.forget();

        gate.set();
        let operation = select.select();
        assert_eq!(operation.index(), third);
        operation.wait(&gate);
    });
}

#[test]
#[should_panic = "only operations of channels are watched"]
fn only_channels_are_watched() {
    let event = AutoResetEvent::new(true);
    let mut select = Select::new();
    select.wait(&event);
    select.ready();
}

#[test]
fn an_abandoned_operation_gives_back_what_it_had() {
    let semaphore = Semaphore::new(1);
    let mut select = Select::new();
    select.wait(&semaphore);
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(select.select())));
    assert!(dropped.is_err());
    assert_eq!(semaphore.available_permits(), 1);
}

/// Selects over two semaphores, plain waiters for either, and cancels: permits are neither lost nor made.
fn permits(takers: usize, rounds: usize) {
    let semaphores = Arc::new([Semaphore::new(2), Semaphore::new(1)]);
    let inside = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let tasks: Vec<_> = (0..takers)
        .map(|number| {
            let (semaphores, inside) = (Arc::clone(&semaphores), Arc::clone(&inside));
            beside(move || {
                let hold = |which: usize| {
                    let most = [2, 1][which];
                    assert!(
                        inside[which].fetch_add(1, Ordering::SeqCst) < most,
                        "more than there are permits"
                    );
                    give_way();
                    inside[which].fetch_sub(1, Ordering::SeqCst);
                };
                for round in 0..rounds {
                    let [first, second] = &*semaphores;
                    match (number + round) % 4 {
                        0 => {
                            let _both = first.acquire_many(2);
                        }
                        1 => select! {
                            wait(first) -> _permit => hold(0),
                            default(Duration::from_micros(100)) => {}
                        },
                        _ => select! {
                            wait(first) -> _permit => hold(0),
                            wait(second) -> _permit => hold(1),
                        },
                    }
                }
            })
        })
        .collect();
    tasks.into_iter().for_each(Side::join);
    assert_eq!([0, 1].map(|which| semaphores[which].available_permits()), [2, 1]);
}

#[test]
fn permits_are_neither_lost_nor_made() {
    guarded(|| permits(6, 200));
    for workers in [1, 2, 4] {
        guarded(|| runtime(workers).run(|| permits(40, 100)));
    }
}
