//! A select over wait queues: one arm is served, and the others leave no trace.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::rerun::{errors, is_child, rerun};
use fibra_runtime as fibra;
use fibra_runtime::wait::{
    Admit, ArmRules, Chosen, Outcome, QueueArm, Until, WaitDescription, WaitQueue, Waiters, look_at_all,
    wait_any,
};

/// Mailboxes: a state of letters, and waiters that are given one each.
type Box = WaitQueue<Vec<u32>, u32>;

static RULES: ArmRules<Vec<u32>, u32> = ArmRules::new(|letters, _, _| !letters.is_empty());

fn put(mailbox: &Box, letter: u32) {
    mailbox.with(|letters, waiters| {
        if waiters.serve_front(0, |given| *given = letter).is_none() {
            letters.push(letter);
        }
    });
}

fn select(boxes: &[Box], until: Until) -> (Chosen, Vec<u32>) {
    let arms: Vec<_> = boxes.iter().map(|mailbox| QueueArm::new(mailbox, 0, 0, &RULES)).collect();
    let chosen = wait_any(arms.iter().zip(0..).map(|(arm, number)| (arm as &_, number)), until);
    (chosen, arms.iter().map(|arm| arm.replace(0)).collect())
}

fn boxes<const N: usize>() -> Arc<[Box; N]> {
    Arc::new([const { Box::new(Vec::new()) }; N])
}

fn waiting(mailbox: &Box) -> usize {
    mailbox.with(|_, waiters| waiters.len(0))
}

fn until_waiting(mailbox: &Box) {
    while waiting(mailbox) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_arm_that_is_served_is_told() {
    let _guard = hang_guard();
    let boxes = boxes::<3>();
    let selects = {
        let boxes = Arc::clone(&boxes);
        thread::spawn(move || select(&*boxes, Until::unwind(None)))
    };
    until_waiting(&boxes[2]);
    put(&boxes[1], 7);
    assert_eq!(selects.join().unwrap(), (Chosen::Served(1), vec![0, 7, 0]));
    assert_eq!(boxes.each_ref().map(waiting), [0, 0, 0]);
}

#[test]
fn an_arm_that_is_ready_sends_the_select_back() {
    let boxes = boxes::<2>();
    put(&boxes[1], 7);
    assert_eq!(select(&*boxes, Until::unwind(None)), (Chosen::Ready, vec![0, 0]));
    assert_eq!(waiting(&boxes[0]), 0);
}

#[test]
fn a_deadline_withdraws_all_arms() {
    let boxes = boxes::<2>();
    let (chosen, _) = select(&*boxes, Until::unwind(Some(Instant::now() + Duration::from_millis(1))));
    assert_eq!((chosen, boxes.each_ref().map(waiting)), (Chosen::TimedOut, [0, 0]));
}

#[test]
fn a_look_at_all_does_not_wait() {
    let boxes = boxes::<2>();
    let arms = boxes.each_ref().map(|mailbox| QueueArm::new(mailbox, 0, 0, &RULES));
    let look = || look_at_all(arms.iter().zip(0..).map(|(arm, number)| (arm as &_, number)));
    assert_eq!(look(), Chosen::TimedOut);
    put(&boxes[0], 1);
    assert_eq!(look(), Chosen::Ready);
}

#[test]
fn a_cancel_withdraws_all_arms() {
    runtime(1).run(|| {
        let boxes = boxes::<2>();
        let selects = {
            let boxes = Arc::clone(&boxes);
            fibra::spawn(move || select(&*boxes, Until::report(None)).0)
        };
        while waiting(&boxes[1]) == 0 {
            fibra::yield_now();
        }
        selects.cancel();
        assert_eq!(selects.join().unwrap(), Chosen::Cancelled);
        assert_eq!(boxes.each_ref().map(waiting), [0, 0]);
    });
}

#[test]
fn a_waiter_behind_a_served_select_is_the_next() {
    runtime(1).run(|| {
        let boxes = boxes::<2>();
        let selects = {
            let boxes = Arc::clone(&boxes);
            fibra::spawn(move || select(&*boxes, Until::unwind(None)))
        };
        while waiting(&boxes[1]) == 0 {
            fibra::yield_now();
        }
        let waits = {
            let boxes = Arc::clone(&boxes);
            fibra::spawn(move || {
                let never = |_: &mut Vec<u32>, _: &mut u32, _: &mut Waiters<'_, u32, 1>| Admit::<()>::Back;
                boxes[1].wait(0, 0, Until::unwind(None), never, || (), |_, _, _, _| ())
            })
        };
        while waiting(&boxes[1]) < 2 {
            fibra::yield_now();
        }
        // The select has not run since: it is still in the second queue, and passed over there.
        put(&boxes[0], 1);
        assert_eq!((waiting(&boxes[0]), waiting(&boxes[1])), (0, 1));
        put(&boxes[1], 2);
        assert_eq!(selects.join().unwrap(), (Chosen::Served(0), vec![1, 0]));
        assert_eq!(waits.join().unwrap(), (Outcome::Served, 2));
    });
}

#[test]
fn a_lent_waiter_waits_for_its_gift() {
    let _guard = hang_guard();
    let boxes = boxes::<1>();
    let selects = {
        let boxes = Arc::clone(&boxes);
        thread::spawn(move || select(&*boxes, Until::unwind(None)))
    };
    until_waiting(&boxes[0]);
    let lent = boxes[0].with(|_, waiters| waiters.lend_front(0)).expect("it waits");
    assert_eq!(waiting(&boxes[0]), 0);
    thread::sleep(Duration::from_millis(5));
    assert!(!selects.is_finished());
    lent.give(|given| *given = 7);
    assert_eq!(selects.join().unwrap(), (Chosen::Served(0), vec![7]));
}

#[test]
fn the_arms_of_one_select_do_not_see_each_other() {
    let mailbox = Box::new(Vec::new());
    static ALONE: ArmRules<Vec<u32>, u32> = ArmRules::new(|_, _, waiters| !waiters.is_empty(0));
    let arms = [0, 1].map(|_| QueueArm::new(&mailbox, 0, 0, &ALONE));
    assert_eq!(look_at_all(arms.iter().zip(0..).map(|(arm, number)| (arm as &_, number))), Chosen::TimedOut);
}

#[test]
fn an_arm_that_comes_twice_ends_the_process() {
    if is_child() {
        let mailbox = Box::new(Vec::new());
        let arm = QueueArm::new(&mailbox, 0, 0, &RULES);
        look_at_all([(&arm as &_, 0), (&arm as &_, 1)].into_iter());
        return;
    }
    let ended = rerun("wait_any::an_arm_that_comes_twice_ends_the_process");
    assert!(!ended.status.success() && errors(&ended).contains("waits for an arm once"));
}

#[test]
fn a_panic_of_a_rule_ends_the_process() {
    static PANICS: ArmRules<Vec<u32>, u32> = ArmRules::new(|_, _, _| panic!("as it should"));
    if is_child() {
        let mailbox = Box::new(Vec::new());
        let arm = QueueArm::new(&mailbox, 0, 0, &PANICS);
        // Caught, it would let the child end well.
        _ = catch_unwind(AssertUnwindSafe(|| look_at_all([(&arm as &_, 0)].into_iter())));
        return;
    }
    let ended = rerun("wait_any::a_panic_of_a_rule_ends_the_process");
    assert!(!ended.status.success() && errors(&ended).contains("as it should"));
}

static MAILBOX: WaitDescription = WaitDescription::new("mailbox");

#[test]
fn a_report_names_the_arms_of_a_select() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let boxes = boxes::<2>();
    let selector = runtime.handle().spawn({
        let boxes = Arc::clone(&boxes);
        move || {
            let arms =
                boxes.each_ref().map(|mailbox| QueueArm::new(mailbox, 0, 0, &RULES).described(&MAILBOX));
            let arms = arms.iter().zip(0..).map(|(arm, number)| (arm as &_, number));
            wait_any(arms, Until::unwind(None))
        }
    });
    until_waiting(&boxes[1]);
    let found = loop {
        if let Some(found) = selector.task().waits_for() {
            break found;
        }
        thread::yield_now();
    };
    assert_eq!(found.kind, "select");
    let arms: Vec<_> = found.arms.iter().map(|arm| (arm.kind.as_str(), arm.object)).collect();
    let expected = boxes.each_ref().map(|mailbox| ("mailbox", std::ptr::from_ref(mailbox).addr()));
    assert_eq!(arms, [expected[1], expected[0]]);
    put(&boxes[0], 1);
    assert_eq!(selector.join().unwrap(), Chosen::Served(0));
}
