//! A task that stays on its worker: its sleeps begin asleep, and its worker wakes it by a plain store. A canceller elsewhere
//! leaves its word alone and tells the worker.
//!
//! The first thread of each model is the worker, with the task on it.

use std::sync::Arc;

use loom::thread;

use crate::cancelled::Cancelled;
use crate::holders::Holders;
use crate::park_state::{Found, ParkState};
use crate::primitive::{AtomicBool, Ordering, check, check_bounded};
use crate::sleep_models::Gate;
use crate::task::{Header, TaskRef};
use crate::wait::list::Node;
use crate::wait::word::{CancelPolicy, Woke};
use crate::wait::{Sleeper, Tickets, Waking, waking};

/// What befalls a sleep.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    Plain,
    /// The task spins first, so that the sleep begins awake.
    Spins,
    /// The task finds, once the sleep is published, that it has to go on.
    Stays,
    /// Its deadline passes.
    Expires,
    /// It is cancelled, and its worker has found the flag.
    Cancelled,
    /// It is cancelled, but the cancel does not concern it.
    GoesOn,
}

impl Gate {
    fn at_home() -> Arc<Self> {
        Self::of(Sleeper::at_home())
    }

    fn spawn_open(self: &Arc<Self>) -> thread::JoinHandle<bool> {
        let gate = Arc::clone(self);
        thread::spawn(move || gate.open())
    }

    /// One sleep on the home worker, from the first to the last line of `sleep_in`.
    fn pass_at_home(&self, course: Course) -> Waking {
        let node = Node::new();
        let sleeper = &self.sleeper;
        let _ = sleeper.word.begin_in_task(CancelPolicy::Open, course != Course::Spins);
        if !self.enter(&node) {
            assert!(sleeper.stay(), "no waker knows of the sleep");
            return Waking::Notified;
        }
        let why = match course {
            Course::Spins if sleeper.word.why().notified => Waking::Notified,
            Course::Stays => {
                // As `stay`.
                sleeper.stay();
                if sleeper.word.why().notified { Waking::Notified } else { Waking::Cancelled }
            }
            _ => {
                sleeper.leave_stack_at_home_and(|| {
                    sleeper.settle(match course {
                        // As `Worker::expire_timers`.
                        Course::Expires => sleeper.word.expire(sleeper.word.epoch()),
                        Course::Cancelled | Course::GoesOn => sleeper.word.cancel_at_home(),
                        _ => Woke::Left,
                    });
                });
                // As `last`.
                while course == Course::GoesOn && !sleeper.word.why().notified {
                    sleeper.word.go_on();
                    sleeper.leave_stack_at_home_and(|| ());
                }
                waking(sleeper.word.why())
            }
        };
        // SAFETY: the node is in this list or in none.
        if unsafe { self.state.lock().waiters.remove(&node) } {
            return why;
        }
        sleeper.await_landing_at_home();
        Waking::Notified
    }

    /// Once all wakers have ended: of so many notifications each was used or has left its permit, and the next sleep is left alone.
    fn assert_used(&self, notifications: u32, passed: &[Waking]) {
        let used = passed.iter().filter(|why| **why == Waking::Notified).count();
        let permits = self.state.lock().permits;
        assert_eq!(u32::try_from(used).unwrap() + permits, notifications, "neither lost nor doubled");
        self.sleeper.assert_even();
    }
}

/// One sleep beside one opening of the gate.
fn a_notification_meets(course: Course) {
    let gate = Gate::at_home();
    let opener = gate.spawn_open();
    let why = gate.pass_at_home(course);
    if gate.sleeper.word.why().notified {
        // SAFETY: the waker wrote before its wake, and writes no more.
        assert_eq!(gate.data.with(|data| unsafe { *data }), 7);
    }
    let next = gate.sleeper.begin_at_once();
    opener.join().unwrap();
    gate.assert_used(1, &[why]);
    assert!(gate.sleeper.word.why().is_asleep(), "nothing lands in the next sleep");
    assert_eq!(gate.sleeper.word.expire(next), Woke::Queue);
}

/// Finds: a wake by another worker as a sleep with AT_HOME is published, or as the task leaves its stack, is lost, queues it twice,
/// or does not show what came before it.
#[test]
fn a_wake_from_afar_meets_a_sleep_at_home() {
    check(|| a_notification_meets(Course::Plain));
}

/// Finds: a wake is lost, queues twice or shows too little in a sleep that begins awake, since the task spins.
#[test]
fn a_wake_from_afar_meets_a_spin_at_home() {
    check(|| a_notification_meets(Course::Spins));
}

/// Finds: a task that goes on without its sleep, while a wake has queued it; a task that leaves its stack for a wake that does
/// not queue it.
#[test]
fn a_remote_wake_meets_a_task_that_stays() {
    check(|| a_notification_meets(Course::Stays));
}

/// Finds: a wake by another worker meets the deadline, which its worker handles: both queue the task, or none; the notification
/// in flight lands in the next sleep.
#[test]
fn a_wake_from_afar_meets_the_deadline_at_home() {
    check(|| a_notification_meets(Course::Expires));
}

/// Finds: a cancel, which its worker handles, meets the deadline: both queue the task, or none.
#[test]
fn a_wake_from_afar_meets_a_cancel_at_home() {
    check(|| a_notification_meets(Course::Cancelled));
}

/// Finds: a wake by another worker that is lost when the task goes on sleeping after a cancel that did not concern it.
#[test]
fn a_remote_wake_meets_a_task_that_sleeps_on_at_home() {
    check(|| a_notification_meets(Course::GoesOn));
}

/// Finds: over two sleeps in a row, which end in different ways, a notification for the first one that ends the second.
#[test]
fn each_notification_is_used_once_at_home() {
    for courses in [[Course::Expires, Course::Stays], [Course::Stays, Course::Expires]] {
        check_bounded(2, move || {
            let gate = Gate::at_home();
            let opener = {
                let gate = Arc::clone(&gate);
                thread::spawn(move || {
                    gate.open();
                    gate.open();
                })
            };
            let passed = courses.map(|course| gate.pass_at_home(course));
            opener.join().unwrap();
            gate.assert_used(2, &passed);
        });
    }
}

/// Shows that the models find a wake by a plain store off the home worker.
#[test]
#[should_panic(expected = "queued as often as it slept")]
fn a_plain_wake_from_afar_queues_twice() {
    check(|| {
        let sleeper = Sleeper::at_home();
        let epoch = sleeper.begin_at_once();
        let waker = {
            let sleeper = Arc::clone(&sleeper);
            thread::spawn(move || sleeper.settle(sleeper.word.notify_at_home()))
        };
        sleeper.settle(sleeper.word.expire(epoch));
        sleeper.take_turn();
        waker.join().unwrap();
        sleeper.assert_even();
    });
}

/// As much of a block as it takes to cancel a task that stays on its worker, and the task.
struct Block {
    header: Header,
    /// Where the task is if the worker is to check its cancel flags.
    cancelled: Cancelled,
    state: ParkState,
    driver: Tickets,
    holders: Holders,
}

// SAFETY: the scopes of the task are its worker's, and the block is handed over by its count, which is what the models check.
unsafe impl Sync for Block {}
// SAFETY: as above.
unsafe impl Send for Block {}

/// What a model breaks, to show that the model finds it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// The worker does not look at what was sent once it is counted as parked.
    LooksEarly,
    /// The note is taken after the look.
    TakenLate,
    /// The worker does not wait, at the end of a task, for what is sent.
    Unawaited,
}

impl Block {
    /// With a task that has not slept.
    fn new() -> Arc<Self> {
        Self::of(Header::new())
    }

    /// With a task that has slept.
    fn at_home() -> Arc<Self> {
        let mut header = Header::new();
        header.sleeper = Sleeper::at_home();
        Self::of(header)
    }

    fn of(header: Header) -> Arc<Self> {
        let block = Block {
            header,
            cancelled: Cancelled::new(),
            state: ParkState::new(),
            driver: Tickets::new(),
            holders: Holders::new(),
        };
        assert!(block.cancelled.is_empty() && !block.state.is_parked());
        Arc::new(block)
    }

    fn spawn(self: &Arc<Self>, f: impl FnOnce(&Block) + 'static) -> thread::JoinHandle<()> {
        let block = Arc::clone(self);
        thread::spawn(move || f(&block))
    }

    fn spawn_cancel(self: &Arc<Self>) -> thread::JoinHandle<()> {
        self.spawn(Block::cancel)
    }

    fn sleeper(&self) -> &Sleeper {
        &self.header.sleeper
    }

    /// As `TaskRef::cancel`, elsewhere.
    fn cancel(&self) {
        self.header.cancel_flags.set_cancelled();
        self.rouse();
    }

    /// As `TaskRef::fire`, elsewhere. The task is in no scope of a token, so this does not concern it.
    fn fire(&self) {
        self.header.cancel_flags.set_fired();
        self.rouse();
    }

    fn rouse(&self) {
        match self.sleeper().word.cancel() {
            Woke::AtHome => self.send_cancelled(),
            woke => assert_eq!(woke, Woke::Left, "its worker alone ends its sleep by a cancel"),
        }
    }

    /// As `check_at_home` and `Block::send_cancelled`.
    fn send_cancelled(&self) {
        if !self.header.cancel_flags.note() {
            return;
        }
        self.holders.touch();
        self.holders.hold();
        self.cancelled.push(TaskRef::of(&self.header));
        self.holders.touch();
        if self.state.is_parked() && self.state.unpark() == Found::Parked {
            self.driver.put();
        }
        self.holders.release();
    }

    /// By the worker, as all that follows: takes what was sent. True if that is the task, which is sent once at a time.
    fn take(&self) -> bool {
        let tasks = self.cancelled.take();
        assert!(tasks.len() <= 1, "sent once at a time");
        tasks.len() == 1
    }

    /// As `Worker::check_cancelled`.
    fn check_cancelled(&self, flaw: Flaw) {
        if self.take() {
            if flaw == Flaw::TakenLate {
                self.check_cancel_flags();
            }
            self.header.cancel_flags.take_note();
            if flaw != Flaw::TakenLate {
                self.check_cancel_flags();
            }
        }
    }

    /// As `Worker::check_cancel_flags`.
    fn check_cancel_flags(&self) {
        let sleeper = self.sleeper();
        if self.header.is_marked(sleeper.word.why().at_end) {
            sleeper.settle(sleeper.word.cancel_at_home());
        }
    }

    /// As `Worker::settle`.
    fn settle(&self) {
        assert!(self.sleeper().fall_at_home(), "no thread notifies it");
        if self.header.cancel_flags.any() {
            self.check_cancel_flags();
        }
    }

    /// A sleep that a cancel alone ends, over the parks of its worker.
    fn sleep_until_cancelled(&self, flaw: Flaw) {
        let sleeper = self.sleeper();
        let _ = sleeper.begin_at_once();
        self.settle();
        loop {
            self.check_cancelled(flaw);
            if sleeper.is_ready() {
                break;
            }
            // As `Worker::park`.
            if self.state.begin_park() && (flaw == Flaw::LooksEarly || self.cancelled.is_empty()) {
                self.driver.take();
            }
            self.state.end_park();
        }
        sleeper.take_turn();
        assert!(sleeper.word.why().cancelled);
    }

    /// As `Worker::finish`, after which the worker goes.
    fn finish(&self, flaw: Flaw) {
        if self.header.cancel_flags.end() && flaw != Flaw::Unawaited {
            // As `Worker::await_canceller`.
            loop {
                self.check_cancelled(flaw);
                if !self.header.cancel_flags.is_noted() {
                    break;
                }
                thread::yield_now();
            }
        }
        self.holders.release();
    }
}

/// Finds: a wake by a plain store that is lost, or undoes a cancel that its worker is told of, before the wake or after it.
#[test]
fn a_wake_at_home_comes_beside_a_cancel() {
    for heeds_first in [false, true] {
        check_bounded(3, move || {
            let block = Block::at_home();
            let sleeper = block.sleeper();
            let _ = sleeper.begin_at_once();
            let canceller = block.spawn_cancel();
            sleeper.stay();
            let _ = sleeper.begin_at_once();
            assert!(sleeper.fall_at_home());
            if heeds_first {
                block.check_cancelled(Flaw::None);
            }
            // As `Worker::notify`.
            sleeper.settle(sleeper.word.notify_at_home());
            let cancelled = sleeper.word.why().cancelled;
            block.check_cancelled(Flaw::None);
            let why = sleeper.word.why();
            assert!(
                why.notified && why.cancelled == cancelled,
                "a cancel changes nothing after that: {why:?}"
            );
            sleeper.take_turn();
            canceller.join().unwrap();
            block.check_cancelled(Flaw::None);
            sleeper.assert_even();
        });
    }
}

/// Finds: a cancel at the first sleep of a task: the canceller does not know yet that it has to tell the worker, the worker finds
/// no flag, and the task sleeps for ever; or both handle it.
#[test]
fn a_cancel_meets_the_first_sleep() {
    check(|| a_first_sleep_with(Ordering::SeqCst, true));
}

/// Shows that the model finds it: a flag that is only released may still be under way when the canceller looks.
#[test]
#[should_panic(expected = "the cancel was lost")]
fn a_cancel_of_the_first_sleep_that_is_only_released_is_lost() {
    check(|| a_first_sleep_with(Ordering::Release, true));
}

/// Shows that it takes the look after the first sleep has begun.
#[test]
#[should_panic(expected = "the cancel was lost")]
fn a_first_sleep_without_a_look_misses_the_cancel() {
    check(|| a_first_sleep_with(Ordering::SeqCst, false));
}

fn a_first_sleep_with(mark: Ordering, looks: bool) {
    let block = Block::new();
    let cancelled = Arc::new(AtomicBool::new(false));
    cancelled.load(Ordering::Relaxed);
    let sleeper = block.sleeper();
    let _ = sleeper.begin_at_once();
    let canceller = {
        let cancelled = Arc::clone(&cancelled);
        block.spawn(move |block| {
            cancelled.store(true, mark);
            block.rouse();
        })
    };
    let look = || {
        if cancelled.load(Ordering::SeqCst) {
            sleeper.settle(sleeper.word.cancel_at_home());
        }
    };
    let heed = || {
        if block.take() {
            block.header.cancel_flags.take_note();
            look();
        }
    };
    assert!(sleeper.fall_at_home());
    if looks {
        look();
    }
    heed();
    canceller.join().unwrap();
    heed();
    assert!(sleeper.is_ready(), "the cancel was lost");
    sleeper.take_turn();
    sleeper.assert_even();
    assert_eq!(waking(sleeper.word.why()), Waking::Cancelled);
}

/// Finds: a cancel of the first sleep that is lost where the worker parks, or that ends a second sleep, which is shielded.
#[test]
fn a_cancel_ends_the_first_sleep_and_not_a_shielded_one() {
    check(|| {
        let block = Block::new();
        let canceller = block.spawn_cancel();
        block.sleep_until_cancelled(Flaw::None);
        let word = &block.sleeper().word;
        let _ = word.begin_in_task(CancelPolicy::Ignore, true);
        block.settle();
        block.check_cancelled(Flaw::None);
        canceller.join().unwrap();
        block.check_cancelled(Flaw::None);
        assert!(word.why().is_asleep());
        block.sleeper().assert_even();
    });
}

/// Finds: a cancel of a later sleep, which begins asleep: the canceller finds the worker awake, the worker finds nothing sent, and it
/// parks beside the cancel.
#[test]
fn a_cancel_meets_a_sleep_at_home() {
    check(|| a_later_sleep_with(Flaw::None));
}

/// Shows that the model finds it: a worker that looks at what was sent before its park, and not in it.
#[test]
#[should_panic(expected = "deadlock")]
fn a_worker_that_looks_before_its_park_alone_misses_the_cancel() {
    check(|| a_later_sleep_with(Flaw::LooksEarly));
}

fn a_later_sleep_with(flaw: Flaw) {
    let block = Block::at_home();
    let canceller = block.spawn_cancel();
    block.sleep_until_cancelled(flaw);
    canceller.join().unwrap();
    block.check_cancelled(flaw);
    block.sleeper().assert_even();
}

/// Finds: of two cancellers one finds the task noted and relies on the message of the first, and the check that follows does not
/// see its flag.
#[test]
fn cancel_that_finds_a_note_is_seen_with_it() {
    check_bounded(3, || two_marks_with(Flaw::None));
}

/// Shows that the model finds it.
#[test]
#[should_panic(expected = "deadlock")]
fn a_note_that_is_taken_after_the_look_hides_a_mark() {
    check_bounded(3, || two_marks_with(Flaw::TakenLate));
}

fn two_marks_with(flaw: Flaw) {
    let block = Block::at_home();
    let firer = block.spawn(Block::fire);
    let canceller = block.spawn_cancel();
    block.sleep_until_cancelled(flaw);
    firer.join().unwrap();
    canceller.join().unwrap();
    block.check_cancelled(flaw);
    block.sleeper().assert_even();
}

/// Finds: a canceller sends a task to a worker that has ended the task and has gone.
#[test]
fn a_worker_waits_at_the_end_for_what_is_sent() {
    check(|| the_end_of_the_task(1, Flaw::None));
}

/// Shows that the model finds it.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_worker_that_does_not_wait_is_gone_too_soon() {
    check(|| the_end_of_the_task(1, Flaw::Unawaited));
}

/// Finds: a worker that ends a task beside a second canceller, and waits for ever for a message that no canceller sends.
#[test]
fn a_worker_waits_for_no_canceller_after_the_end() {
    check_bounded(3, || the_end_of_the_task(2, Flaw::None));
}

fn the_end_of_the_task(cancellers: usize, flaw: Flaw) {
    let block = Block::at_home();
    let cancellers: Vec<_> = (0..cancellers).map(|_| block.spawn_cancel()).collect();
    // Between two sleeps, as at the end.
    block.check_cancelled(flaw);
    block.finish(flaw);
    cancellers.into_iter().for_each(|canceller| canceller.join().unwrap());
    assert!(
        flaw == Flaw::Unawaited || block.cancelled.is_empty(),
        "nothing is sent to a worker that has gone"
    );
    assert!(block.holders.is_freed(), "freed by the last");
    block.sleeper().assert_even();
}
