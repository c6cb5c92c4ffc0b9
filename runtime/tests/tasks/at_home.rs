//! Tasks that stay on their worker, which is most: what it spares their sleeps (see `wait/word.rs`) is not to cost them a wake, nor a
//! cancel that comes from elsewhere.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::recorded::Recorded;
use crate::rounds::rounds;
use fibra_runtime::task::{Builder, Switch};
use fibra_runtime::wait::{self, Asleep, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};
use fibra_runtime::{self as fibra, JoinHandle, Task, task};

const LONG: Duration = Duration::from_secs(3600);

/// Wakes the other one and sleeps, until it is cancelled. Both begin once both are there.
fn swing(partner: &Task, swings: &AtomicUsize) {
    loop {
        partner.unpark();
        task::park();
        swings.fetch_add(1, Ordering::Relaxed);
    }
}

/// Two tasks that wake each other, and how often they have.
fn swingers(swings: &Arc<AtomicUsize>) -> [JoinHandle<()>; 2] {
    let (tell, partners) = mpsc::channel::<Task>();
    let (tell_other, partner) = mpsc::channel::<Task>();
    let body = |partners: mpsc::Receiver<Task>| {
        let swings = Arc::clone(swings);
        move || swing(&partners.recv().expect("it is told before it runs"), &swings)
    };
    let first = fibra::spawn_local(body(partners));
    let second = fibra::spawn_local(body(partner));
    tell.send(second.task().clone()).expect("it waits for that");
    tell_other.send(first.task().clone()).expect("it waits for that");
    [first, second]
}

#[test]
fn a_cancel_from_elsewhere_meets_wakes_at_home() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        for round in rounds(1000) {
            runtime.run(|| {
                let swings = Arc::new(AtomicUsize::new(0));
                let all: Vec<_> = (0..16).flat_map(|_| swingers(&swings)).collect();
                while swings.load(Ordering::Relaxed) < 100 {
                    fibra::yield_now();
                }
                let victims: Vec<Task> = all.iter().map(|handle| handle.task().clone()).collect();
                let halves = [victims.clone(), victims];
                let cancellers = halves.map(|mut victims| {
                    thread::spawn(move || {
                        victims.rotate_left(round % 32);
                        victims.iter().for_each(Task::cancel);
                    })
                });
                for handle in all {
                    assert!(handle.join().unwrap_err().is_cancelled());
                }
                cancellers.into_iter().for_each(|canceller| canceller.join().expect("it only cancels"));
            });
        }
    }
}

#[test]
fn a_cancel_from_elsewhere_meets_the_end_of_the_task() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        for _ in rounds(3000) {
            let go = Arc::new(AtomicBool::new(false));
            let tasks: Vec<_> = (0..8)
                .map(|_| {
                    runtime.spawn(|| {
                        // It has slept, so that it is known to stay.
                        _ = task::park_timeout(Duration::from_micros(1));
                        fibra::yield_now();
                    })
                })
                .collect();
            let victims: Vec<Task> = tasks.iter().map(|handle| handle.task().clone()).collect();
            let canceller = {
                let go = Arc::clone(&go);
                thread::spawn(move || {
                    go.store(true, Ordering::Release);
                    victims.iter().cycle().take(64).for_each(Task::cancel);
                })
            };
            while !go.load(Ordering::Acquire) {
                thread::yield_now();
            }
            for handle in tasks {
                if let Err(error) = handle.join() {
                    assert!(error.is_cancelled());
                }
            }
            canceller.join().expect("it only cancels");
        }
    }
}

#[test]
fn a_cancel_that_comes_after_the_runtime_does_nothing() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let slept = runtime.spawn(|| fibra::sleep(Duration::from_micros(1)));
    let ended = slept.task().clone();
    slept.join().expect("no task has cancelled it");
    drop(runtime);
    ended.cancel();
    ended.unpark();
    assert!(ended.is_finished());
}

#[test]
fn the_end_of_a_runtime_meets_cancels_of_its_tasks() {
    let _guard = hang_guard();
    for _ in rounds(1000) {
        let runtime = runtime(2);
        let tasks: Vec<_> = (0..16).map(|_| runtime.spawn(|| fibra::sleep(LONG))).collect();
        let victims: Vec<Task> = tasks.iter().map(|handle| handle.task().clone()).collect();
        let canceller = thread::spawn(move || victims.iter().cycle().take(64).for_each(Task::cancel));
        drop(runtime);
        canceller.join().expect("it only cancels");
        for handle in tasks {
            assert!(handle.join().unwrap_err().is_cancelled());
        }
    }
}

/// Sleeps several times, with a hook that does `what` each time that the task is about to leave its thread.
fn with_a_hook(what: fn(&Task), sleeps: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let hook = move |switch| {
        if switch == Switch::Out {
            what(&task::current());
        }
    };
    Builder::new().on_switch(hook).spawn(sleeps)
}

#[test]
fn a_hook_wakes_its_own_task_on_the_way_into_its_sleep() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        let parked = runtime(workers).run(|| {
            let parks = || {
                (0..100).for_each(|_| task::park());
                assert!((0..100).all(|_| task::park_timeout(LONG)));
            };
            with_a_hook(Task::unpark, parks).join()
        });
        parked.expect("each park had its token");
    }
}

#[test]
fn a_hook_cancels_its_own_task_on_the_way_into_its_sleep() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        let slept = runtime(workers).run(|| {
            let sleeps = || {
                // The first one does not begin asleep, the next one does.
                task::shield(|| fibra::sleep(Duration::from_micros(1)));
                fibra::sleep(LONG);
            };
            with_a_hook(Task::cancel, sleeps).join()
        });
        assert!(slept.unwrap_err().is_cancelled());
    }
}

/// A strategy that finds what it waits for at its second look, when another thread may wake it already.
struct Stays<'a>(&'a Mutex<Option<RawWake>>);

impl WaitStrategy for Stays<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: the waker takes it out under this lock, and `before_awake` answers `Served` from then on.
        *self.0.lock().unwrap() = Some(unsafe { me.raw() });
        Asleep::Rouse
    }

    fn before_awake(&self, _why: Waking) -> Withdrawal {
        match self.0.lock().unwrap().take() {
            Some(_) => Withdrawal::Withdrawn,
            None => Withdrawal::Served,
        }
    }
}

#[test]
fn a_wake_from_elsewhere_meets_a_sleeper_that_stays() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| {
            let (slot, stop) = (Mutex::new(None), AtomicBool::new(false));
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let wake = slot.lock().unwrap().take();
                        wake.map_or_else(thread::yield_now, RawWake::wake);
                    }
                });
                for _ in rounds(20_000) {
                    assert_eq!(wait::sleep(&Stays(&slot), None), Waking::Notified);
                }
                stop.store(true, Ordering::Relaxed);
            });
            assert!(!task::park_timeout(Duration::from_millis(10)), "none of those wakes is left over");
        });
    }
}

fn cancel_myself(_me: WakeHandle<'_>) -> Asleep {
    task::current().cancel();
    thread::sleep(Duration::from_millis(2));
    Asleep::Stay
}

fn cancel_myself_and_stay(_me: WakeHandle<'_>) -> Asleep {
    task::current().cancel();
    Asleep::Rouse
}

/// Why such a sleep ends, inside a scope whose time is over before the sleeper is off its stack; and which hooks were called.
fn sleep_that_ends_on_its_way(publish: fn(WakeHandle<'_>) -> Asleep) -> (Waking, Vec<String>) {
    let (tell, told) = mpsc::channel();
    runtime(1).run(move || {
        let sleeper = fibra::spawn(move || {
            fibra::sleep(Duration::from_micros(1));
            let how = Recorded::new(publish);
            _ = fibra::timeout(Duration::from_millis(1), || {
                let why = wait::sleep(&how, None);
                tell.send((why, how.calls())).expect("the receiver waits");
            });
        });
        _ = sleeper.join();
    });
    told.recv().expect("it was told")
}

#[test]
fn a_sleeper_that_is_cancelled_on_its_way_withdraws_as_one() {
    let _guard = hang_guard();
    let (why, calls) = sleep_that_ends_on_its_way(cancel_myself);
    assert_eq!(why, Waking::Cancelled);
    assert_eq!(calls, ["published", "withdrawn after Cancelled"]);
    let (why, calls) = sleep_that_ends_on_its_way(cancel_myself_and_stay);
    assert_eq!(why, Waking::Notified);
    assert_eq!(calls, ["published", "withdrawn after Notified"]);
}
