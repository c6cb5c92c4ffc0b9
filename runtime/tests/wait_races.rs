//! Rules 4, 5 and 6 of the wait core: causes that come at one moment, and what a waker may touch.

mod common;
#[path = "common/recorded.rs"]
mod recorded;
#[path = "common/rest.rs"]
mod rest;
#[path = "common/rounds.rs"]
mod rounds;
#[path = "common/tokens.rs"]
mod tokens;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::{hang_guard, runtime};
use fibra_runtime as fibra;
use fibra_runtime::wait::list::{List, Node};
use fibra_runtime::wait::{self, Asleep, Lock, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};
use recorded::{Recorded, after, in_a_task_and_on_a_thread, stay};
use rest::until_others_sleep;
use rounds::rounds;
use tokens::Tokens;

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

struct Linked<'a> {
    list: &'a Lock<List>,
    node: Node,
}

impl WaitStrategy for Linked<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: in no list yet, alive until the sleep is over, always under this lock.
        unsafe { self.list.lock().push_back(&self.node, me.raw()) };
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: in this list or in none.
        let linked = unsafe { self.list.lock().remove(&self.node) };
        if linked || why == Waking::Notified { Withdrawal::Withdrawn } else { Withdrawal::Served }
    }
}

#[test]
fn rule_6_wakes_are_taken_under_the_lock_and_given_after_it() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let list = Arc::new(Lock::new(List::new()));
        let (ready, order) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(Vec::new())));
        let sleepers: Vec<_> = (0..50)
            .map(|number| {
                let (list, ready, order) = (Arc::clone(&list), Arc::clone(&ready), Arc::clone(&order));
                fibra::spawn_local(move || {
                    ready.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(
                        wait::sleep(&Linked { list: &list, node: Node::new() }, None),
                        Waking::Notified
                    );
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        while ready.load(Ordering::SeqCst) < 50 {
            fibra::yield_now();
        }
        let mut locked = list.lock();
        let mut wakes = Vec::new();
        while let Some(wake) = locked.pop_front() {
            wakes.push(wake);
        }
        drop(locked);
        assert_eq!(wakes.len(), 50);
        wakes.into_iter().for_each(RawWake::wake);
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
        assert_eq!(*order.lock().unwrap(), (0..50).collect::<Vec<_>>(), "first in, first out");
    });
}
