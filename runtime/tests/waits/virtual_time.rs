//! Virtual time: a paused clock moves when all tasks sleep.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fibra_runtime::time::{advance, hold, now, pause, resume, settle, timeout};
use fibra_runtime::{self as fibra, Runtime, sleep, spawn, spawn_blocking, task, unblock, yield_now};

use crate::common::hang_guard;
use crate::message::message;
use crate::paused::{TICK, is_about, paused, taken};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_hour_of_sleep_takes_no_time() {
    let begin = Instant::now();
    assert!(is_about(paused(|| taken(|| sleep(HOUR))), HOUR));
    assert!(begin.elapsed() < HOUR / 60);
}

#[test]
fn time_stands_while_tasks_run() {
    paused(|| {
        let begin = now();
        thread::sleep(Duration::from_millis(2));
        (0..1000).for_each(|_| yield_now());
        spawn(|| ()).join().unwrap();
        assert_eq!(now(), begin);
    });
}

#[test]
fn timers_of_many_tasks_fire_in_their_order() {
    let order = paused(|| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let sleepers: Vec<_> = [5_u64, 1, 4, 2, 3]
            .into_iter()
            .map(|hours| {
                let order = Arc::clone(&order);
                spawn(move || {
                    sleep(HOUR * hours as u32);
                    order.lock().unwrap().push(hours);
                })
            })
            .collect();
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
        Arc::into_inner(order).unwrap().into_inner().unwrap()
    });
    assert_eq!(order, [1, 2, 3, 4, 5]);
}

#[test]
fn a_timeout_ends_a_wait_that_nothing_else_ends() {
    paused(|| {
        let spent = taken(|| assert!(timeout(HOUR, task::park).is_err()));
        assert!(is_about(spent, HOUR));
        assert!(!is_about(taken(|| assert_eq!(timeout(HOUR, || 7), Ok(7))), HOUR));
    });
}

#[test]
fn intervals_and_timed_joins_are_virtual() {
    paused(|| {
        let spent = taken(|| fibra::time::interval(HOUR).take(25).for_each(drop));
        assert!(is_about(spent, HOUR * 24));
        let spent = taken(|| {
            let sleeper = spawn(|| sleep(HOUR));
            let sleeper = sleeper.join_timeout(SECOND).expect_err("it sleeps for an hour");
            sleeper.join().unwrap();
        });
        assert!(is_about(spent, HOUR));
        let spent = taken(|| assert!(!task::park_timeout(HOUR)));
        assert!(is_about(spent, HOUR));
    });
}

#[test]
fn time_stands_while_a_task_is_on_the_blocking_pool() {
    paused(|| {
        let busy = || thread::sleep(Duration::from_millis(5));
        let begin = now();
        let sleeper = spawn(|| sleep(HOUR));
        unblock(busy);
        spawn_blocking(busy).join().unwrap();
        assert_eq!(now(), begin);
        drop(spawn_blocking(busy));
        assert!(is_about(taken(|| sleeper.join().unwrap()), HOUR), "nobody waits for the last one");
    });
}

#[test]
fn a_call_on_the_pool_holds_time_until_it_has_ended() {
    for _ in 0..100 {
        paused(|| {
            let begin = now();
            let call = task::spawn_call(|| thread::sleep(Duration::from_micros(50)));
            assert!(timeout(HOUR, || call.join().unwrap()).is_ok());
            assert_eq!(now(), begin);
        });
    }
}

#[test]
fn a_hold_keeps_time_until_a_thread_has_come() {
    for _ in 0..50 {
        paused(|| {
            let (begin, held, me) = (now(), hold(), task::current());
            let thread = thread::spawn(move || {
                thread::sleep(Duration::from_micros(100));
                me.unpark();
                drop(held);
            });
            assert!(timeout(HOUR, task::park).is_ok());
            assert_eq!(now(), begin);
            thread.join().unwrap();
        });
    }
}

#[test]
fn the_last_hold_lets_time_go_on() {
    for _ in 0..50 {
        paused(|| {
            let held = [hold(), hold()];
            let thread = thread::spawn(move || {
                for held in held {
                    thread::sleep(Duration::from_micros(100));
                    drop(held);
                }
            });
            assert!(is_about(taken(|| sleep(HOUR)), HOUR));
            thread.join().unwrap();
        });
    }
}

#[test]
fn a_held_timer_comes_when_its_time_has_passed_for_real() {
    paused(|| {
        let _held = hold();
        let begin = Instant::now();
        let wait = Duration::from_millis(20);
        assert!(is_about(taken(|| sleep(wait)), wait));
        assert!(begin.elapsed() >= wait - TICK);
    });
}

#[test]
fn advance_fires_timers_in_order() {
    paused(|| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let begin = now();
        for seconds in [3, 1, 2, 30] {
            let seen = Arc::clone(&seen);
            spawn(move || {
                sleep(SECOND * seconds);
                // What a timer starts runs before the next timer.
                spawn(move || seen.lock().unwrap().push((seconds, now() - begin))).join().unwrap();
            });
        }
        advance(SECOND * 10);
        assert!(is_about(now() - begin, SECOND * 10));
        let seen = seen.lock().unwrap().clone();
        assert_eq!(seen.iter().map(|(seconds, _)| *seconds).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(seen.iter().all(|(seconds, at)| is_about(*at, SECOND * *seconds)), "{seen:?}");
    });
}

#[test]
fn advance_by_as_much_as_a_timer_waits_for_fires_it() {
    paused(|| {
        for nanos in (1..100_000).step_by(777) {
            let wait = Duration::from_nanos(nanos);
            let sleeper = spawn(move || sleep(wait));
            advance(wait);
            assert!(sleeper.is_finished(), "{wait:?}");
        }
    });
}

#[test]
fn advance_works_while_time_is_held_and_beside_a_task_that_is_always_ready() {
    paused(|| {
        let (_held, begin) = (hold(), now());
        let sleeper = spawn(|| sleep(HOUR));
        let busy = spawn(|| {
            loop {
                yield_now();
            }
        });
        advance(HOUR * 2);
        assert!(sleeper.is_finished());
        assert!(is_about(now() - begin, HOUR * 2));
        busy.cancel();
        assert!(busy.join().is_err());
    });
}

#[test]
fn settle_returns_when_all_others_sleep() {
    paused(|| {
        let steps = Arc::new(AtomicU32::new(0));
        let (begin, counted) = (now(), Arc::clone(&steps));
        let worker = spawn(move || {
            for _ in 0..100 {
                yield_now();
                let step = Arc::clone(&counted);
                spawn(move || step.fetch_add(1, Ordering::Relaxed)).join().unwrap();
            }
            sleep(HOUR);
        });
        settle();
        assert_eq!((steps.load(Ordering::Relaxed), now()), (100, begin));
        assert!(!worker.is_finished());
    });
}

#[test]
fn a_resumed_clock_goes_on_with_the_machine_and_never_back() {
    paused(|| {
        let begin = now();
        sleep(HOUR);
        resume();
        let (virtually, really) = (now(), Instant::now());
        sleep(Duration::from_millis(5));
        assert!(really.elapsed() >= Duration::from_millis(5));
        assert!(now() >= virtually + Duration::from_millis(5) && virtually >= begin + HOUR);
        pause();
        let paused = now();
        assert!(paused >= virtually);
        assert!(is_about(taken(|| sleep(HOUR)), HOUR));
    });
}

#[test]
fn a_runtime_may_be_paused_later() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.run(|| {
        pause();
        assert!(is_about(taken(|| sleep(HOUR)), HOUR));
    });
    let thread = runtime.spawn(now).join().unwrap();
    assert!(thread > Instant::now(), "the clock is that of the runtime");
    assert!(now() <= Instant::now(), "and no other thread's");
}

#[test]
fn a_thread_has_its_own_clock_again_after_a_run() {
    paused(|| sleep(HOUR));
    assert!(now() <= Instant::now());
    let _guard = hang_guard();
    Runtime::builder().workers(1).run(|| assert!(now() <= Instant::now())).unwrap();
}

#[test]
fn a_deadlock_ends_the_run_and_names_all_waits() {
    let text = message(|| {
        paused(|| {
            let waiter = task::Builder::new().name("stuck").spawn(task::park);
            _ = waiter.join();
        });
    });
    assert!(text.contains("all tasks sleep, and nothing is left that could wake one"), "{text}");
    assert!(text.contains("main") && text.contains("waits for join"), "{text}");
    assert!(text.contains("stuck") && text.contains("waits for park"), "{text}");
}

#[test]
fn a_deadlock_in_a_built_runtime_ends_its_run_alone() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().start_paused(true).build().unwrap();
    let text = message(|| runtime.run(task::park));
    assert!(text.contains("waits for park"), "{text}");
    assert_eq!(runtime.run(|| 7), 7);
}

#[test]
fn destructors_may_sleep_in_virtual_time_while_the_runtime_ends() {
    struct Slow;
    impl Drop for Slow {
        fn drop(&mut self) {
            task::shield(|| sleep(HOUR));
        }
    }
    paused(|| {
        spawn(|| {
            let _slow = Slow;
            task::park();
        });
        yield_now();
    });
}

#[test]
fn several_workers_are_refused() {
    let refused = Runtime::builder().start_paused(true).workers(2).run(|| ()).unwrap_err();
    assert!(refused.to_string().contains("one worker, not 2"), "{refused}");
    let text = message(|| Runtime::builder().workers(2).run(pause).unwrap());
    assert!(text.contains("`time::pause` needs a runtime with one worker, and this one has 2"), "{text}");
}

#[test]
fn misuse_explains_itself() {
    assert!(message(pause).contains("`time::pause` was called outside a task"));
    assert!(message(|| drop(hold())).contains("needs a thread that belongs to a runtime"));
    let unpaused = || Runtime::builder().workers(1).run(|| advance(SECOND)).unwrap();
    assert!(message(unpaused).contains("call `time::pause` first"));
    let too_far = || paused(|| advance(Duration::MAX));
    assert!(message(too_far).contains("cannot be advanced by"));
}

#[test]
fn a_timeout_around_a_call_on_the_pool_waits_for_the_call() {
    paused(|| {
        let others: Vec<_> = (0..3).map(|_| spawn(|| sleep(HOUR))).collect();
        let wait = Duration::from_millis(5);
        let begun = AtomicU32::new(0);
        let call = || {
            begun.fetch_add(1, Ordering::Relaxed);
            thread::sleep(wait * 10);
        };
        // A busy machine may not start the call in time. Then it is withdrawn and never begins.
        while timeout(wait, || unblock(call)).is_err() {
            assert_eq!(begun.load(Ordering::Relaxed), 0);
        }
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn several_tasks_settle_at_once() {
    paused(|| {
        let settlers: Vec<_> = (0..3).map(|_| spawn(settle)).collect();
        settle();
        settlers.into_iter().for_each(|settler| settler.join().unwrap());
    });
}

#[test]
fn a_waker_that_waits_does_not_suspend_the_task_that_settles() {
    use std::future::poll_fn;
    use std::task::{Poll, Wake};

    struct Yields(task::Task);
    impl Wake for Yields {
        fn wake(self: Arc<Self>) {
            yield_now();
            self.0.unpark();
        }
    }
    paused(|| {
        let mut sleeper = std::pin::pin!(spawn(|| sleep(HOUR)));
        let waker = Arc::new(Yields(task::current())).into();
        let pending = sleeper.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending();
        assert!(pending && fibra::block_on(poll_fn(|_| Poll::Ready(true))));
        advance(HOUR);
        assert!(sleeper.is_finished());
    });
}
