//! Rules 4, 5 and 6 of the wait core: causes that come at one moment, and what a waker may touch. Rule 6 for the primitives is in
//! the facade's `tests/interface/wakers.rs`.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::recorded::{Recorded, after, in_a_task_and_on_a_thread, stay};
use crate::rest::until_others_sleep;
use crate::rounds::rounds;
use crate::tokens::Tokens;
use fibra_runtime::wait::{self, Asleep, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};
use fibra_runtime::{self as fibra, JoinHandle, Task, task};

/// A waker that has unlinked the sleeper and takes its time.
struct SlowWaker {
    sender: mpsc::Sender<RawWake>,
}

impl WaitStrategy for SlowWaker {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: used once by the receiver; `before_awake` answers `Served` whatever else ends the sleep.
        self.sender.send(unsafe { me.raw() }).expect("the receiver waits");
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified { Withdrawal::Withdrawn } else { Withdrawal::Served }
    }
}

/// Sleeps while a waker lands 20 ms late; true if the sleep ended after the landing.
fn sleep_until_the_late_landing(deadline: Option<Instant>) -> (Waking, bool) {
    let (sender, wakes) = mpsc::channel::<RawWake>();
    let landed = Arc::new(AtomicBool::new(false));
    let landing = Arc::clone(&landed);
    let waker = thread::spawn(move || {
        let wake = wakes.recv().unwrap();
        thread::sleep(Duration::from_millis(20));
        landing.store(true, Ordering::SeqCst);
        wake.wake();
    });
    let why = wait::sleep(&SlowWaker { sender }, deadline);
    let in_order = landed.load(Ordering::SeqCst);
    waker.join().unwrap();
    (why, in_order)
}

#[test]
fn rule_4_served_after_a_deadline_waits_for_the_landing_and_is_a_notification() {
    in_a_task_and_on_a_thread(|| {
        assert_eq!(sleep_until_the_late_landing(after(Duration::from_millis(1))), (Waking::Notified, true));
    });
}

#[test]
fn rule_4_served_after_a_cancel_waits_for_the_landing_and_is_a_notification() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let sleeper = fibra::spawn(|| {
            let result = sleep_until_the_late_landing(None);
            let how = Recorded::new(stay);
            assert_eq!(wait::sleep(&how, None), Waking::Cancelled, "the cancel was not lost");
            assert_eq!(how.calls().len(), 2);
            result
        });
        until_others_sleep();
        sleeper.task().cancel();
        assert_eq!(sleeper.join().unwrap(), (Waking::Notified, true));
    });
}

#[test]
fn rule_4_a_token_is_never_lost_to_a_deadline_of_the_same_moment() {
    const ROUNDS: usize = 20_000;
    in_a_task_and_on_a_thread(|| {
        let tokens = Tokens::new();
        let (turn, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    while turn.load(Ordering::Acquire) < round {
                        std::hint::spin_loop();
                        thread::yield_now();
                    }
                    if turn.load(Ordering::Acquire) > ROUNDS {
                        return;
                    }
                    (0..round % 61).for_each(|_| std::hint::spin_loop());
                    tokens.release();
                    done.store(round, Ordering::Release);
                }
            });
            let mut outcomes = [0, 0];
            for round in rounds(ROUNDS) {
                turn.store(round, Ordering::Release);
                let why = tokens.acquire(after(Duration::from_nanos((round % 16) as u64 * 1000)));
                while done.load(Ordering::Acquire) != round {
                    thread::yield_now();
                }
                match why {
                    Waking::Notified => assert_eq!(tokens.free(), 0, "one result and a token as well"),
                    _ => {
                        assert_eq!(tokens.free(), 1, "the token is gone");
                        assert_eq!(tokens.acquire(None), Waking::Notified);
                    }
                }
                outcomes[usize::from(why == Waking::Notified)] += 1;
            }
            turn.store(ROUNDS + 1, Ordering::Release);
            println!("timed out {}, notified {}", outcomes[0], outcomes[1]);
        });
        assert!(!tokens.has_waiters());
    });
}

#[test]
fn rule_5_a_node_may_die_as_soon_as_its_sleep_is_over() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let tokens = Arc::new(Tokens::new());
        let sleepers: Vec<_> = (0..64)
            .map(|_| {
                let tokens = Arc::clone(&tokens);
                fibra::spawn(move || {
                    for _ in 0..200 {
                        // On the heap, so that a touch after the wake is one of freed memory.
                        let how = Box::new(tokens.strategy());
                        assert_eq!(wait::sleep(&*how, None), Waking::Notified);
                        drop(how);
                    }
                })
            })
            .collect();
        for released in 0..64 * 200 {
            tokens.release();
            if released % 50 == 0 {
                fibra::yield_now();
            }
        }
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
        assert_eq!(tokens.free(), 0);
    });
}

/// Takes the value of the task whose end wakes it, and wakes another task.
struct Takes {
    handle: Mutex<Option<JoinHandle<usize>>>,
    value: Mutex<Option<usize>>,
    other: Task,
}

impl Takes {
    fn poll(self: &Arc<Self>) {
        let mut handle = self.handle.lock().unwrap();
        let waker = Waker::from(Arc::clone(self));
        let ended = handle.as_mut().map(|handle| Pin::new(handle).poll(&mut Context::from_waker(&waker)));
        if let Some(Poll::Ready(value)) = ended {
            *handle = None;
            *self.value.lock().unwrap() = Some(value.unwrap());
            self.other.unpark();
        }
    }
}

impl Wake for Takes {
    fn wake(self: Arc<Self>) {
        self.poll();
    }
}

#[test]
fn rule_6_a_waker_may_join_the_task_that_wakes_it_and_unpark_another() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| {
            for round in rounds(500) {
                let ends = fibra::spawn(move || {
                    task::park();
                    round
                });
                let (ending, other) = (ends.task().clone(), fibra::spawn(task::park));
                let handle = Mutex::new(Some(ends));
                let takes = Arc::new(Takes { handle, value: Mutex::new(None), other: other.task().clone() });
                takes.poll();
                ending.unpark();
                other.join().unwrap();
                assert_eq!(*takes.value.lock().unwrap(), Some(round));
            }
        });
    }
}
