//! The promises of a select that waits for tasks to end.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::common::{everywhere, guarded, runtime};
use fibra_runtime::JoinHandle;
use fibra_sync::channel;
use fibra_sync::{AutoResetEvent, ManualResetEvent, select, select_biased};

const SHORT: Duration = Duration::from_millis(5);

/// Long, for a wait that is to end before.
const LONG: Duration = Duration::from_secs(60);

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
    everywhere(|| {
        let own = runtime(1);
        let [mut long, mut task] = [LONG, LONG].map(|time| own.spawn(move || fibra_runtime::sleep(time)));
        task.cancel();
        select! {
            join(long) -> _ => unreachable!(),
            join(task) -> result => assert!(result.unwrap_err().is_cancelled()),
        }
        let mut task = own.spawn(|| std::panic::resume_unwind(Box::new("bomb")));
        select! {
            join(long) -> _ => unreachable!(),
            join(task) -> result => {
                let panic = result.map(|()| unreachable!()).unwrap_err().into_panic();
                assert_eq!(panic.downcast_ref(), Some(&"bomb"));
            }
        }
        select! {
            join(long) => unreachable!(),
            default(SHORT) => {}
        }
        long.cancel();
        assert!(long.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn tasks_of_several_kinds_are_joined_side_by_side() {
    everywhere(|| {
        let own = runtime(1);
        let event = Arc::new(ManualResetEvent::new(false));
        let end = Arc::clone(&event);
        let mut number = own.spawn(|| 7);
        let mut word = own.spawn(move || {
            end.wait();
            String::from("seven")
        });
        select! {
            join(number) -> result => assert_eq!(result.unwrap(), 7),
            join(word) -> _ => unreachable!(),
        }
        event.set();
        let word = select! {
            join(word) -> result => result.unwrap(),
            recv(channel::never::<String>()) -> _ => unreachable!(),
        };
        assert_eq!(word, "seven");
    });
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

/// Tasks that end at the moment at which another arm is ready, and the time is over: nothing is lost, no task hangs.
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
