//! The promises of a select that waits for events.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use crate::common::{Side, beside, everywhere, give_way, guarded, pause, runtime};
use fibra_sync::channel::{self, Select, SelectedOperation};
use fibra_sync::{AutoResetEvent, ManualResetEvent, select, select_biased};

const SHORT: Duration = Duration::from_millis(5);

#[test]
fn a_case_finds_what_it_waits_for_behind_pointers() {
    static SET: LazyLock<ManualResetEvent> = LazyLock::new(|| ManualResetEvent::new(true));
    guarded(|| {
        let deep = Box::new(Arc::new(AutoResetEvent::new(true)));
        let kept = fibra_sync::Mutex::new(AutoResetEvent::new(true));
        for _ in 0..3 {
            select! {
                wait(&deep) => {}
                wait(kept.lock()) => {}
                wait(SET) => {}
                default => panic!("all were set"),
            }
        }
        select_biased! {
            wait(deep) => {}
            wait(*kept.lock()) => {}
            wait(&&SET) => {}
        }
    });
}

#[test]
fn an_auto_reset_event_lets_one_select_through() {
    everywhere(|| {
        let event = AutoResetEvent::new(true);
        select! {
            wait(event) => {}
            default => panic!("it was set"),
        }
        assert!(!event.is_set(), "the set is used");
        select! {
            wait(event) => panic!("it is not set"),
            default => {}
        }
        select! {
            wait(event) => panic!("it is not set"),
            default(SHORT) => {}
        }
        event.set();
        assert!(event.is_set(), "no waiter is left");
        assert!(event.try_wait());
    });
}

#[test]
fn a_manual_reset_event_lets_all_selects_through() {
    everywhere(|| {
        let event = ManualResetEvent::new(false);
        select! {
            wait(event) => panic!("it is not set"),
            default(SHORT) => {}
        }
        event.set();
        for _ in 0..2 {
            select! {
                wait(event) => {}
                default => panic!("it stays set"),
            }
        }
    });
}

#[test]
fn a_set_that_is_reset_at_once_lets_its_waiters_through() {
    everywhere(|| {
        let event = Arc::new(ManualResetEvent::new(false));
        let (done, end) = channel::unbounded();
        let waiters: Vec<_> = (0..10)
            .map(|_| {
                let (event, done) = (Arc::clone(&event), done.clone());
                beside(move || {
                    select! {
                        wait(event) => {}
                        recv(channel::never::<()>()) -> _ => unreachable!(),
                    }
                    done.send(()).unwrap();
                })
            })
            .collect();
        pause();
        while end.len() < 10 {
            event.set();
            event.reset();
            give_way();
        }
        waiters.into_iter().for_each(Side::join);
    });
}

#[test]
fn one_event_may_be_in_a_select_twice() {
    everywhere(|| {
        let event = Arc::new(AutoResetEvent::new(false));
        let setter = {
            let event = Arc::clone(&event);
            beside(move || {
                pause();
                event.set();
            })
        };
        select! {
            wait(event) => {}
            wait(event) => {}
        }
        setter.join();
        assert!(!event.is_set());
    });
}

/// Selects and plain waiters of one event, each until it has passed so often.
fn many_wait(selects: usize, plain: usize, passes: usize) {
    let event = Arc::new(AutoResetEvent::new(false));
    let other = Arc::new(AutoResetEvent::new(false));
    let passed = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::new(ManualResetEvent::new(false));
    let waiters: Vec<_> = (0..selects + plain)
        .map(|number| {
            let (event, other, stop) = (Arc::clone(&event), Arc::clone(&other), Arc::clone(&stop));
            let (passed, stopped) = (Arc::clone(&passed), Arc::clone(&stopped));
            beside(move || {
                let patience = Duration::from_micros(50 * number as u64);
                while !stopped.load(Ordering::Relaxed) {
                    match number < selects {
                        true => select! {
                            wait(event) => _ = passed[0].fetch_add(1, Ordering::Relaxed),
                            wait(other) => _ = passed[1].fetch_add(1, Ordering::Relaxed),
                            wait(stop) => {}
                            default(patience) => {}
                        },
                        false => {
                            let came = event.wait_timeout(patience);
                            passed[0].fetch_add(came as usize, Ordering::Relaxed);
                        }
                    }
                }
            })
        })
        .collect();
    // Each set is waited for, so none falls upon one that is kept.
    for round in 1..=passes {
        event.set();
        other.set();
        while passed.iter().any(|count| count.load(Ordering::Relaxed) < round) {
            give_way();
        }
        assert!(passed.iter().all(|count| count.load(Ordering::Relaxed) == round), "one pass for each set");
    }
    stopped.store(true, Ordering::Relaxed);
    stop.set();
    waiters.into_iter().for_each(Side::join);
}

#[test]
fn each_set_lets_one_through_of_selects_and_plain_waiters() {
    guarded(|| many_wait(4, 2, 500));
    for workers in [1, 2, 4] {
        guarded(|| runtime(workers).run(|| many_wait(20, 10, 2000)));
    }
}

#[test]
fn tasks_and_threads_share_an_event() {
    guarded(|| {
        let runtime = runtime(2);
        let event = Arc::new(AutoResetEvent::new(false));
        let (turns, passed) = channel::unbounded();
        let waits = {
            let event = Arc::clone(&event);
            move || {
                for _ in 0..1000 {
                    select! {
                        wait(event) => turns.send(()).unwrap(),
                        recv(channel::never::<()>()) -> _ => unreachable!(),
                    }
                }
            }
        };
        let threads: Vec<_> = (0..2).map(|_| thread::spawn(waits.clone())).collect();
        let tasks: Vec<_> = (0..4).map(|_| runtime.spawn(waits.clone())).collect();
        for _ in 0..6000 {
            event.set();
            passed.recv().unwrap();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert!(!event.is_set());
    });
}

#[test]
fn a_cancelled_select_has_used_no_set() {
    for workers in [1, 2, 4] {
        guarded(|| {
            runtime(workers).run(|| {
                let event = Arc::new(AutoResetEvent::new(false));
                let passed = Arc::new(AtomicUsize::new(0));
                let mut sets = 0;
                for _ in 0..3000 {
                    let (selects, passes) = (Arc::clone(&event), Arc::clone(&passed));
                    let task = fibra_runtime::spawn(move || {
                        select! {
                            wait(selects) => _ = passes.fetch_add(1, Ordering::Relaxed),
                            recv(channel::never::<()>()) -> _ => unreachable!(),
                        }
                    });
                    fibra_runtime::yield_now();
                    let setter = {
                        let event = Arc::clone(&event);
                        fibra_runtime::spawn(move || event.set())
                    };
                    task.cancel();
                    setter.join().unwrap();
                    let chosen = task.join().is_ok();
                    assert_eq!(event.try_wait(), !chosen, "the set was used, or is kept");
                    sets += chosen as usize;
                }
                assert_eq!(passed.load(Ordering::Relaxed), sets);
            });
        });
    }
}

#[test]
fn two_sets_at_once_choose_one_arm_and_keep_the_other() {
    let rounds = || {
        let events = Arc::new([AutoResetEvent::new(false), AutoResetEvent::new(false)]);
        for round in 0..1000 {
            let setters: Vec<_> = (0..2)
                .map(|number| {
                    let events = Arc::clone(&events);
                    beside(move || events[number].set())
                })
                .collect();
            let mut used = [false; 2];
            select! {
                wait(events[0]) => used[0] = true,
                wait(events[1]) => used[1] = true,
            }
            setters.into_iter().for_each(Side::join);
            for number in [0, 1] {
                assert_eq!(events[number].try_wait(), !used[number], "round {round}");
            }
        }
    };
    for workers in [1, 2, 4] {
        guarded(|| runtime(workers).run(rounds));
    }
    guarded(rounds);
}

/// Makes a select choose `event`, which is set meanwhile.
fn choose_a_set<'a>(
    select: &mut Select<'a>,
    event: &'a Arc<AutoResetEvent>,
    while_it_waits: bool,
) -> SelectedOperation<'a> {
    if !while_it_waits {
        event.set();
        return select.select();
    }
    let setter = {
        let event = Arc::clone(event);
        beside(move || {
            pause();
            event.set();
        })
    };
    let operation = select.select();
    setter.join();
    operation
}

/// Drops an operation that is not completed.
fn abandon(operation: SelectedOperation<'_>) {
    assert!(catch_unwind(AssertUnwindSafe(|| drop(operation))).is_err());
}

#[test]
fn a_reset_takes_the_set_of_an_operation_that_is_dropped_later() {
    everywhere(|| {
        for while_it_waits in [false, true] {
            let event = Arc::new(AutoResetEvent::new(false));
            let mut select = Select::new();
            select.wait(&*event);
            abandon(choose_a_set(&mut select, &event, while_it_waits));
            assert!(event.try_wait(), "it is passed on");
            let operation = choose_a_set(&mut select, &event, while_it_waits);
            event.reset();
            abandon(operation);
            assert!(!event.is_set(), "the reset has taken the set");
            // A set after the reset stays.
            event.reset();
            abandon(choose_a_set(&mut select, &event, while_it_waits));
            assert!(event.try_wait());
        }
    });
}

#[test]
fn a_select_that_came_after_the_reset_gets_no_set_from_before() {
    everywhere(|| {
        let event = Arc::new(AutoResetEvent::new(false));
        let mut first = Select::new();
        first.wait(&*event);
        let operation = choose_a_set(&mut first, &event, true);
        event.reset();
        let late = {
            let event = Arc::clone(&event);
            beside(move || {
                select! {
                    wait(event) => true,
                    default(20 * SHORT) => false,
                }
            })
        };
        pause();
        abandon(operation);
        assert!(!late.join(), "the set is of a time before the reset");
        assert!(!event.is_set());
    });
}
