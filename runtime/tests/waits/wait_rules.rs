//! Rules 1, 2, 3, 8 and 9 of the wait core, each by name, through strategies of our own; the others are in
//! `wait_races.rs` (4 to 6), `no_allocation.rs` (5) and `wait_kinds.rs` (7).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::recorded::{Recorded, after, in_a_task_and_on_a_thread, stay};
use crate::rest::until_others_sleep;
use crate::rounds::rounds;
use fibra_runtime::wait::{self, Asleep, Lock, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};
use fibra_runtime::{self as fibra, task};

const LONG: Duration = Duration::from_secs(3600);

fn rouse(_me: WakeHandle<'_>) -> Asleep {
    Asleep::Rouse
}

fn wake_myself(me: WakeHandle<'_>) -> Asleep {
    // SAFETY: it lands here and now.
    unsafe { me.raw() }.wake();
    Asleep::Stay
}

#[test]
fn rule_1_both_hooks_run_once_in_their_order_after_a_rouse() {
    in_a_task_and_on_a_thread(|| {
        let how = Recorded::new(rouse);
        assert_eq!(wait::sleep(&how, None), Waking::Notified);
        assert_eq!(how.calls(), ["published", "withdrawn after Notified"]);
    });
}

#[test]
fn rule_1_both_hooks_run_once_in_their_order_after_a_wake() {
    in_a_task_and_on_a_thread(|| {
        let how = Recorded::new(wake_myself);
        assert_eq!(wait::sleep(&how, None), Waking::Notified);
        assert_eq!(how.calls(), ["published", "withdrawn after Notified"]);
    });
}

#[test]
fn rule_1_both_hooks_run_once_in_their_order_after_a_deadline() {
    in_a_task_and_on_a_thread(|| {
        let how = Recorded::new(stay);
        assert_eq!(wait::sleep(&how, after(Duration::from_millis(1))), Waking::TimedOut);
        assert_eq!(how.calls(), ["published", "withdrawn after TimedOut"]);
    });
}

#[test]
fn rule_1_both_hooks_run_once_in_their_order_after_a_cancel() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let sleeper = fibra::spawn(|| {
            let how = Recorded::new(stay);
            assert_eq!(wait::sleep(&how, None), Waking::Cancelled);
            how.calls()
        });
        until_others_sleep();
        sleeper.task().cancel();
        assert_eq!(sleeper.join().unwrap(), ["published", "withdrawn after Cancelled"]);
    });
}

/// A word that the waker changes while the sleeper is away.
struct Mailbox {
    letter: Cell<u32>,
    wake: Cell<Option<RawWake>>,
}

// SAFETY: the cells are only reached under the lock that the mailbox is kept in.
unsafe impl Send for Mailbox {}

struct ForALetter<'a> {
    mailbox: &'a Lock<Mailbox>,
    first_look: Cell<u32>,
    second_look: Cell<u32>,
}

impl WaitStrategy for ForALetter<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mailbox = self.mailbox.lock();
        self.first_look.set(mailbox.letter.get());
        // SAFETY: used once, by the thread that takes it out under the lock; there is no other end of this sleep.
        mailbox.wake.set(Some(unsafe { me.raw() }));
        Asleep::Stay
    }

    fn before_awake(&self, _why: Waking) -> Withdrawal {
        self.second_look.set(self.mailbox.lock().letter.get());
        Withdrawal::Withdrawn
    }
}

#[test]
fn rule_1_the_look_after_the_wake_sees_what_the_waker_wrote() {
    in_a_task_and_on_a_thread(|| {
        let mailbox = Lock::new(Mailbox { letter: Cell::new(0), wake: Cell::new(None) });
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let wake = {
                        let mailbox = mailbox.lock();
                        let wake = mailbox.wake.take();
                        mailbox.letter.set(mailbox.letter.get() + u32::from(wake.is_some()));
                        wake
                    };
                    wake.map_or_else(thread::yield_now, RawWake::wake);
                }
            });
            for round in 0..2000 {
                let how =
                    ForALetter { mailbox: &mailbox, first_look: Cell::new(9), second_look: Cell::new(9) };
                assert_eq!(wait::sleep(&how, None), Waking::Notified);
                assert_eq!((how.first_look.get(), how.second_look.get()), (round, round + 1));
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn rule_2_the_timer_of_an_earlier_sleep_ends_no_later_one() {
    in_a_task_and_on_a_thread(|| {
        for _ in 0..20 {
            let how = Recorded::new(wake_myself);
            assert_eq!(wait::sleep(&how, after(Duration::from_millis(1))), Waking::Notified);
            let begin = Instant::now();
            let how = Recorded::new(stay);
            assert_eq!(wait::sleep(&how, after(Duration::from_millis(3))), Waking::TimedOut);
            assert!(begin.elapsed() >= Duration::from_millis(3));
        }
    });
}

#[test]
fn rule_3_a_wake_before_the_sleeper_is_off_its_stack_is_kept() {
    in_a_task_and_on_a_thread(|| {
        for _ in 0..1000 {
            assert_eq!(wait::sleep(&Recorded::new(wake_myself), None), Waking::Notified);
        }
    });
}

#[test]
fn rule_8_a_task_that_migrates_is_itself_on_every_thread() {
    let _guard = hang_guard();
    runtime(3).run(|| {
        let tasks: Vec<_> = (0..30)
            .map(|_| {
                // SAFETY: the task keeps nothing that is tied to a thread.
                unsafe { task::Builder::new().migratable() }.spawn(|| {
                    let me = task::current();
                    for round in 0..200 {
                        if round % 8 == 0 {
                            fibra::sleep(Duration::from_micros(30))
                        } else {
                            fibra::yield_now()
                        }
                        assert_eq!(task::current(), me);
                        assert!(wait::in_task());
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn rule_9_a_cancel_between_two_sleeps_is_not_lost() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let (running, cancelled) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (begun, told) = (Arc::clone(&running), Arc::clone(&cancelled));
        let sleeper = fibra::spawn(move || {
            fibra::sleep(Duration::from_micros(10));
            begun.store(true, Ordering::SeqCst);
            while !told.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            fibra::sleep(LONG);
        });
        let victim = sleeper.task().clone();
        thread::spawn(move || {
            while !running.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            victim.cancel();
            cancelled.store(true, Ordering::SeqCst);
        });
        assert!(sleeper.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn rule_9_a_cancel_that_meets_the_fall_asleep_is_not_lost() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    for round in rounds(3000) {
        let begun = Arc::new(AtomicBool::new(false));
        let begin = Arc::clone(&begun);
        let sleeper = runtime.spawn(move || {
            begin.store(true, Ordering::SeqCst);
            fibra::sleep(LONG);
        });
        while !begun.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        (0..round % 97 * 4).for_each(|_| std::hint::spin_loop());
        sleeper.task().cancel();
        assert!(sleeper.join().unwrap_err().is_cancelled());
    }
}
