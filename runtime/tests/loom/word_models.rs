//! The wait word alone.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::primitive::{AtomicBool, Ordering, check};
use crate::wait::word::{Fallen, Woke};
use crate::wait::{Sleeper, Waking, waking};

/// Finds: a wake that comes while the sleeper leaves its stack is lost, or queues it twice.
#[test]
fn a_wake_meets_the_falling_asleep() {
    check(|| {
        let sleeper = Sleeper::new();
        let _ = sleeper.word.begin(false);
        let waker = {
            let sleeper = Arc::clone(&sleeper);
            thread::spawn(move || sleeper.settle(sleeper.word.notify()))
        };
        let left = sleeper.leave_stack();
        assert_eq!(waking(sleeper.word.why()), Waking::Notified);
        waker.join().unwrap();
        assert_eq!(sleeper.queued(), u32::from(left));
    });
}

/// Finds: two wakers at once, beside a third that is late, queue the sleeper twice or not at all; a notification that
/// had landed before the sleeper looks is passed over for the deadline.
#[test]
fn of_several_wakers_one_queues() {
    check(|| {
        let sleeper = Sleeper::new();
        let epoch = sleeper.word.begin(false);
        let notifier = {
            let sleeper = Arc::clone(&sleeper);
            thread::spawn(move || sleeper.settle(sleeper.word.notify()))
        };
        let timer = {
            let sleeper = Arc::clone(&sleeper);
            thread::spawn(move || sleeper.settle(sleeper.word.expire(epoch)))
        };
        let left = sleeper.leave_stack();
        sleeper.settle(sleeper.word.cancel());
        let why = sleeper.word.why();
        assert!(why.notified || why.timed_out, "a waker ended the sleep: {why:?}");
        assert!(!why.cancelled, "a cancel changes nothing once another has woken it");
        assert_eq!(waking(why) == Waking::Notified, why.notified);
        notifier.join().unwrap();
        timer.join().unwrap();
        assert_eq!(sleeper.queued(), u32::from(left));
        assert_eq!(waking(sleeper.word.why()), Waking::Notified);
    });
}

/// Finds: a cancel and a deadline at once both claim the sleep.
#[test]
fn a_cancel_meets_the_deadline() {
    check(|| {
        let sleeper = Sleeper::new();
        let epoch = sleeper.word.begin(false);
        assert_eq!(sleeper.word.fall_asleep(), Fallen::Asleep);
        let canceller = {
            let sleeper = Arc::clone(&sleeper);
            thread::spawn(move || sleeper.word.cancel())
        };
        let timer = sleeper.word.expire(epoch);
        let canceller = canceller.join().unwrap();
        assert!((timer == Woke::Queue) != (canceller == Woke::Queue), "exactly one queues it");
        assert_eq!(waking(sleeper.word.why()), Waking::TimedOut);
    });
}

/// Finds: a waker of an earlier sleep wakes the next one.
#[test]
fn a_stale_waker_leaves_the_next_sleep_alone() {
    check(|| {
        let sleeper = Sleeper::new();
        let epoch = sleeper.word.begin(false);
        let stale = {
            let sleeper = Arc::clone(&sleeper);
            thread::spawn(move || sleeper.word.expire(epoch))
        };
        // The first sleep ends without having fallen asleep.
        let _ = sleeper.word.begin(true);
        assert_eq!(sleeper.word.fall_asleep(), Fallen::Asleep, "no waker ended this sleep");
        assert_eq!(stale.join().unwrap(), Woke::Left);
        let why = sleeper.word.why();
        assert!(why.asleep && why.shielded && !why.notified && !why.timed_out, "{why:?}");
    });
}

/// Finds: a cancel comes just as the sleeper leaves its stack; the canceller finds it awake, the sleeper finds itself not
/// cancelled, and it sleeps for ever (the store-load pair).
#[test]
fn a_cancel_meets_the_falling_asleep() {
    check(|| a_cancel_with(Ordering::SeqCst, Ordering::SeqCst));
}

/// Shows that the model finds it: a flag that is only released may still be under way when the canceller looks.
#[test]
#[should_panic(expected = "the cancel was lost")]
fn a_cancel_that_is_only_released_is_lost() {
    check(|| a_cancel_with(Ordering::Release, Ordering::SeqCst));
}

/// Shows it for the other side: a second look that only acquires may see the past.
#[test]
#[should_panic(expected = "the cancel was lost")]
fn a_second_look_that_only_acquires_misses_the_cancel() {
    check(|| a_cancel_with(Ordering::SeqCst, Ordering::Acquire));
}

fn a_cancel_with(mark: Ordering, look: Ordering) {
    let sleeper = Sleeper::new();
    let cancelled = Arc::new(AtomicBool::new(false));
    cancelled.load(Ordering::Relaxed);
    let _ = sleeper.word.begin(false);
    let canceller = {
        let (sleeper, cancelled) = (Arc::clone(&sleeper), Arc::clone(&cancelled));
        thread::spawn(move || {
            cancelled.store(true, mark);
            sleeper.settle(sleeper.word.cancel());
        })
    };
    // As `Worker::settle` and `check_cancel_flags`.
    assert_eq!(sleeper.word.fall_asleep(), Fallen::Asleep);
    if cancelled.load(look) {
        sleeper.settle(sleeper.word.cancel());
    }
    canceller.join().unwrap();
    assert_eq!(sleeper.queued(), 1, "the cancel was lost");
    assert_eq!(waking(sleeper.word.why()), Waking::Cancelled);
}

/// Finds: a cancel ends a shielded sleep.
#[test]
fn a_shield_keeps_the_cancel_out() {
    check(|| {
        let sleeper = Sleeper::new();
        let _ = sleeper.word.begin(true);
        let canceller = {
            let sleeper = Arc::clone(&sleeper);
            thread::spawn(move || sleeper.word.cancel())
        };
        assert_eq!(sleeper.word.fall_asleep(), Fallen::Asleep);
        assert_eq!(canceller.join().unwrap(), Woke::Left);
        assert_eq!(sleeper.word.notify(), Woke::Queue);
    });
}

/// Finds: a woken sleeper does not see what its waker wrote before the wake, by either way to learn of the wake.
#[test]
fn a_wake_publishes() {
    check(|| {
        let sleeper = Sleeper::new();
        let data = Arc::new(UnsafeCell::new(0));
        let _ = sleeper.word.begin(false);
        let waker = {
            let (sleeper, data) = (Arc::clone(&sleeper), Arc::clone(&data));
            thread::spawn(move || {
                // SAFETY: the sleeper reads only once it is notified.
                data.with_mut(|data| unsafe { *data = 1 });
                // The queue publishes as well; here the word has to do it alone.
                let _ = sleeper.word.notify();
            })
        };
        while !sleeper.word.why().notified {
            thread::yield_now();
        }
        // SAFETY: the waker has written before it notified, and writes no more.
        assert_eq!(data.with(|data| unsafe { *data }), 1);
        waker.join().unwrap();
    });
}

/// Finds: the waker that queues the sleeper runs it, on its own thread, before what the sleeper did last is seen there.
#[test]
fn falling_asleep_publishes() {
    check(|| {
        let sleeper = Sleeper::new();
        let stack = Arc::new(UnsafeCell::new(0));
        let _ = sleeper.word.begin(false);
        let waker = {
            let (sleeper, stack) = (Arc::clone(&sleeper), Arc::clone(&stack));
            thread::spawn(move || {
                if sleeper.word.notify() == Woke::Queue {
                    // SAFETY: the sleeper is off its stack, and the waker that queues it has it alone.
                    assert_eq!(stack.with(|stack| unsafe { *stack }), 1);
                }
            })
        };
        // SAFETY: not asleep yet, so no other thread reads.
        stack.with_mut(|stack| unsafe { *stack = 1 });
        let _ = sleeper.word.fall_asleep();
        waker.join().unwrap();
    });
}

/// Finds: a notification that is lost when the sleeper goes on sleeping after a cancel that did not concern it.
#[test]
fn a_notification_beside_a_cancel_that_does_not_count_is_kept() {
    check(|| {
        let sleeper = Sleeper::new();
        let _ = sleeper.word.begin(false);
        let notifier = {
            let sleeper = Arc::clone(&sleeper);
            thread::spawn(move || sleeper.settle(sleeper.word.notify()))
        };
        let canceller = {
            let sleeper = Arc::clone(&sleeper);
            thread::spawn(move || sleeper.settle(sleeper.word.cancel()))
        };
        sleeper.leave_stack();
        while !sleeper.word.why().notified {
            sleeper.word.go_on();
            sleeper.leave_stack();
        }
        notifier.join().unwrap();
        canceller.join().unwrap();
        sleeper.assert_even();
    });
}
