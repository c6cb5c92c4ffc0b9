//! The promises of a select's arms that are no channels.

mod common;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use common::{Side, beside, everywhere, give_way, guarded, pause, runtime};
use fibra_runtime::{CancelToken, JoinHandle};
use fibra_sync::channel::{self, Select, TryReadyError};
use fibra_sync::{
    AutoResetEvent, CountdownEvent, ManualResetEvent, Semaphore, WaitGroup, select, select_biased,
};

const SHORT: Duration = Duration::from_millis(5);

/// Long, for a wait that is to end before.
const LONG: Duration = Duration::from_secs(60);

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
        assert!(event.is_set(), "nobody waits any more");
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
fn a_set_that_is_reset_at_once_lets_those_through_who_waited() {
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
fn counts_let_selects_through_at_zero() {
    everywhere(|| {
        let (event, group) = (Arc::new(CountdownEvent::new(2)), Arc::new(WaitGroup::new()));
        let busy = Arc::clone(&group).worker_owned();
        select! {
            wait(event) => panic!("two signals are missing"),
            wait(group) => panic!("one is busy"),
            default => {}
        }
        let signals = Arc::clone(&event);
        let worker = beside(move || {
            pause();
            signals.signal();
            signals.signal();
            pause();
            drop(busy);
        });
        select! {
            wait(event) => {}
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
            wait(semaphore) -> permit => permit,
            default => panic!("two were free"),
        };
        select! {
            wait(semaphore) => assert_eq!(semaphore.available_permits(), 0),
            default => panic!("one was free"),
        }
        assert_eq!(semaphore.available_permits(), 1);
        let other = semaphore.acquire();
        select! {
            wait(semaphore) => panic!("none is free"),
            default(SHORT) => {}
        }
        drop((kept, other));
        assert_eq!(semaphore.available_permits(), 2);
    });
}

#[test]
fn a_select_leaves_nobody_behind_it_waiting() {
    everywhere(|| {
        // A big request, a select behind it, and a small one behind both.
        let semaphore = Arc::new(Semaphore::new(1));
        let behind = Arc::clone(&semaphore);
        let big = {
            let semaphore = Arc::clone(&semaphore);
            beside(move || assert!(semaphore.acquire_many_timeout(2, 4 * SHORT).is_none()))
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

#[test]
fn a_list_of_operations_waits_for_events() {
    everywhere(|| {
        let (event, semaphore) = (AutoResetEvent::new(false), Semaphore::new(0));
        let gate = ManualResetEvent::new(false);
        let mut select = Select::new();
        let (first, second, third) = (select.wait(&event), select.wait(&semaphore), select.wait(&gate));
        assert_eq!(select.try_ready(), Err(TryReadyError));
        assert!(select.select_timeout(SHORT).is_err());

        event.set();
        assert_eq!(select.ready(), first);
        assert!(event.is_set(), "it was only looked at");
        let operation = select.select();
        assert_eq!(operation.index(), first);
        operation.wait(&event);
        assert!(!event.is_set());

        semaphore.add_permits(1);
        let operation = select.select();
        assert_eq!(operation.index(), second);
        let permit = operation.wait(&semaphore);
        assert_eq!(semaphore.available_permits(), 0);
        permit.forget();

        gate.set();
        assert_eq!(select.ready(), third);
        select.select().wait(&gate);
    });
}

#[test]
fn what_a_watcher_is_woken_for_it_leaves_to_others() {
    everywhere(|| {
        let event = Arc::new(AutoResetEvent::new(false));
        let watcher = {
            let event = Arc::clone(&event);
            beside(move || {
                let mut select = Select::new();
                let index = select.wait(&*event);
                assert_eq!(select.ready(), index);
            })
        };
        pause();
        event.set();
        watcher.join();
        assert!(event.wait_timeout(LONG));
    });
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

/// Selects and plain waiters of one event, each until it has passed so often.
fn crowd(selects: usize, plain: usize, passes: usize) {
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
    guarded(|| crowd(4, 2, 500));
    for workers in [1, 2, 4] {
        guarded(|| runtime(workers).run(|| crowd(20, 10, 2000)));
    }
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

#[test]
fn a_join_takes_the_result_or_leaves_it_to_the_handle() {
    everywhere(|| {
        let own = runtime(1);
        let mut task = own.spawn(|| 7);
        select! {
            join(task) => {}
            default(LONG) => panic!("it ends at once"),
        }
        assert!(task.is_finished());
        select! {
            join(task) -> result => assert_eq!(result.unwrap(), 7),
            default => panic!("it has ended"),
        }
    });
}

#[test]
fn a_join_that_is_not_chosen_keeps_the_handle() {
    everywhere(|| {
        let own = runtime(1);
        let event = Arc::new(ManualResetEvent::new(false));
        let (ready, end) = (AutoResetEvent::new(true), Arc::clone(&event));
        let mut task = own.spawn(move || {
            end.wait();
            String::from("ended")
        });
        select! {
            join(task) => panic!("it waits"),
            default => {}
        }
        select! {
            join(task) -> _ => panic!("it waits"),
            default(SHORT) => event.set(),
        }
        let mut task = own.spawn(move || event.wait());
        select_biased! {
            wait(ready) => {}
            join(task) -> _ => unreachable!(),
        }
        task.join().unwrap();
    });
}

#[test]
fn a_join_takes_the_place_of_the_waker_that_a_poll_has_left() {
    everywhere(|| {
        let own = runtime(1);
        let event = Arc::new(ManualResetEvent::new(false));
        let end = Arc::clone(&event);
        let mut task = own.spawn(move || end.wait());
        let poll = |task: &mut JoinHandle<()>| {
            Pin::new(task).poll(&mut Context::from_waker(Waker::noop())).is_pending()
        };
        assert!(poll(&mut task));
        select! {
            join(task) => panic!("it waits"),
            default(SHORT) => {}
        }
        assert!(poll(&mut task));
        event.set();
        select! {
            join(task) -> result => result.unwrap(),
            default(LONG) => panic!("it ends at once"),
        }
    });
}

#[test]
fn joins_tell_of_panics_and_cancels() {
    let runtime = runtime(1);
    let mut task = runtime.spawn(|| fibra_runtime::sleep(LONG));
    let (stop, stopped) = channel::bounded::<()>(1);
    task.cancel();
    select! {
        join(task) -> result => assert!(result.unwrap_err().is_cancelled()),
        recv(stopped) -> _ => unreachable!(),
    }
    drop(stop);
}

#[test]
fn several_joins_are_taken_one_by_one() {
    everywhere(|| {
        let own = runtime(2);
        let mut tasks = [3, 1, 2].map(|number| {
            let task = own.spawn(move || {
                fibra_runtime::sleep(number * SHORT);
                number
            });
            Some(task)
        });
        let mut ended = 0;
        while let [Some(first), Some(second), Some(third)] = &mut tasks {
            let place = select! {
                join(*first) => 0,
                join(*second) => 1,
                join(*third) => 2,
            };
            ended = tasks[place].take().unwrap().join().unwrap();
        }
        assert!(ended > 0);
        tasks.into_iter().flatten().for_each(|task| _ = task.join().unwrap());
    });
}

#[test]
fn a_task_that_joins_itself_panics() {
    runtime(1).run(|| {
        let (give, take) = channel::bounded::<JoinHandle<()>>(1);
        let (told, hear) = channel::bounded(1);
        let task = fibra_runtime::spawn(move || {
            let mut own = take.recv().unwrap();
            let joined = catch_unwind(AssertUnwindSafe(|| {
                select! {
                    join(own) => {}
                    default => {}
                }
            }));
            told.send(joined.is_err()).unwrap();
        });
        give.send(task).unwrap();
        assert_eq!(hear.recv(), Ok(true));
    });
}

/// Tasks that end at the moment at which another arm is ready, and the time is over: nothing is lost, nobody hangs.
fn ends_at_once(rounds: usize) {
    let event = Arc::new(AutoResetEvent::new(false));
    for round in 0..rounds {
        let [mut first, mut second] = [1, 2].map(|number| {
            fibra_runtime::spawn(move || {
                if round % 3 == 0 {
                    fibra_runtime::yield_now();
                }
                number
            })
        });
        let setter = {
            let event = Arc::clone(&event);
            fibra_runtime::spawn(move || event.set())
        };
        let mut used = false;
        match round % 2 {
            0 => select! {
                join(first) => assert!(first.is_finished()),
                wait(event) => used = true,
                join(second) => assert!(second.is_finished()),
            },
            _ => select! {
                join(first) => {}
                wait(event) => used = true,
                join(second) => {}
                default(Duration::from_micros(round as u64 % 16)) => {}
            },
        }
        assert_eq!((first.join().unwrap(), second.join().unwrap()), (1, 2));
        setter.join().unwrap();
        assert_eq!(event.try_wait(), !used, "the set was used, or is kept");
    }
}

#[test]
fn ends_and_sets_at_one_moment_are_not_lost() {
    for workers in [1, 2, 4] {
        guarded(|| runtime(workers).run(|| ends_at_once(2000)));
        // Many of them, so that tasks are taken over by other workers.
        guarded(|| {
            runtime(workers).run(|| {
                let all: Vec<_> = (0..20).map(|_| fibra_runtime::spawn(|| ends_at_once(100))).collect();
                all.into_iter().for_each(|one| one.join().unwrap());
            });
        });
    }
}

#[test]
fn threads_join_tasks_that_end_at_once() {
    guarded(|| {
        let own = runtime(2);
        let event = Arc::new(AutoResetEvent::new(false));
        for round in 0..2000 {
            let sets = Arc::clone(&event);
            let mut task = own.spawn(move || {
                sets.set();
                round
            });
            let used = select! {
                join(task) => false,
                wait(event) => true,
            };
            assert_eq!(task.join().unwrap(), round);
            assert_eq!(event.try_wait(), !used);
        }
    });
}

#[test]
fn a_cancelled_select_lets_go_of_a_task_that_ends() {
    for workers in [1, 2, 4] {
        guarded(|| {
            runtime(workers).run(|| {
                for round in 0..3000 {
                    let joiner = fibra_runtime::spawn(move || {
                        let mut inner = fibra_runtime::spawn(move || round);
                        select! {
                            join(inner) -> result => result.unwrap(),
                            recv(channel::never::<()>()) -> _ => unreachable!(),
                        }
                    });
                    fibra_runtime::yield_now();
                    joiner.cancel();
                    match joiner.join() {
                        Ok(result) => assert_eq!(result, round),
                        Err(error) => assert!(error.is_cancelled(), "{error}"),
                    }
                }
            });
        });
    }
}
