//! A select over wait queues.

use std::sync::Arc;

use loom::thread;

use crate::primitive::check_bounded;
use crate::wait::{ArmRules, Chosen, QueueArm, Until, WaitQueue, over, wait_any};

/// Permits in small.
type Permits = WaitQueue<usize, usize>;

static RULES: ArmRules<usize, usize> = ArmRules::new(|free, _, waiters| *free > 0 && waiters.is_empty(0));

/// Gives a permit to a waiter, or keeps it.
fn release(permits: &Permits) {
    permits.with(|free, waiters| {
        if waiters.serve_front(0, |given| *given += 1).is_none() {
            *free += 1;
        }
    });
}

fn free(permits: &Permits) -> usize {
    permits.with(|free, _| *free)
}

/// Waits for a permit of either.
fn select(either: &[Permits; 2], until: Until) -> Option<usize> {
    loop {
        for (number, permits) in either.iter().enumerate() {
            if permits.with(|free, _| free.checked_sub(1).map(|rest| *free = rest).is_some()) {
                return Some(number);
            }
        }
        let arms = either.each_ref().map(|permits| QueueArm::new(permits, 0, 0, &RULES));
        let chosen = wait_any(arms.iter().enumerate().map(|(number, arm)| (arm as &_, number)), until);
        let given = arms.map(|arm| arm.replace(0));
        match chosen {
            Chosen::Served(number) => {
                assert_eq!((given[number], given[1 - number]), (1, 0), "one arm is served");
                return Some(number);
            }
            Chosen::Ready => assert_eq!(given, [0, 0]),
            Chosen::TimedOut | Chosen::Cancelled => {
                assert_eq!(given, [0, 0]);
                return None;
            }
        }
    }
}

/// Finds: a select that is served twice, and a permit that is lost with the arm that was passed over.
#[test]
fn one_of_two_queues_serves_a_select() {
    check_bounded(2, || {
        let either = Arc::new([Permits::new(0), Permits::new(0)]);
        let releases = [0, 1].map(|number| {
            let either = Arc::clone(&either);
            thread::spawn(move || release(&either[number]))
        });
        let mut left = [1, 1];
        left[select(&either, Until::unwind(None)).expect("it has no deadline")] -= 1;
        releases.into_iter().for_each(|release| release.join().unwrap());
        assert_eq!(left, [free(&either[0]), free(&either[1])]);
    });
}

/// Finds: a permit that is given to a select after its deadline, or lost.
#[test]
fn a_select_is_served_or_leaves() {
    check_bounded(3, || {
        let either = Arc::new([Permits::new(0), Permits::new(0)]);
        let releases = {
            let either = Arc::clone(&either);
            thread::spawn(move || release(&either[1]))
        };
        let is_served = select(&either, Until::unwind(Some(over()))).is_some();
        releases.join().unwrap();
        assert_eq!(free(&either[1]), usize::from(!is_served));
    });
}

/// Finds: a lender that writes to a waiter that has left, and a waiter that is not woken after all.
#[test]
fn a_lent_waiter_stays_until_it_is_given_back() {
    check_bounded(3, || {
        let permits = Arc::new(Permits::new(0));
        let lender = {
            let permits = Arc::clone(&permits);
            thread::spawn(move || {
                let lent = permits.with(|_, waiters| waiters.lend_front(0));
                lent.map(|lent| lent.give(|given| *given = 7)).is_some()
            })
        };
        let arm = QueueArm::new(&*permits, 0, 0, &RULES);
        let chosen = wait_any([(&arm as &_, 5)].into_iter(), Until::unwind(Some(over())));
        let expected = if lender.join().unwrap() { (Chosen::Served(5), 7) } else { (Chosen::TimedOut, 0) };
        assert_eq!((chosen, arm.replace(0)), expected);
    });
}
