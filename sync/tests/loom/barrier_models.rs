//! The rounds of the barrier.

use std::sync::Arc;

use loom::thread;

use crate::barrier_round::{Party, Round};
use crate::primitive::check_bounded;
use crate::wait::list::Node;
use crate::wait::{Lock, Sleeper};

/// Comes to a barrier of two. True for the leader; `None` if the deadline came first.
fn arrive(round: &Lock<Round>, expires: bool) -> Option<bool> {
    let (node, sleeper) = (Node::with(Party::new()), Sleeper::new());
    let epoch = sleeper.word.begin(false);
    // SAFETY: the node lives until this ends, before which it has left or its wake has landed.
    let stays = unsafe { round.lock().arrive(2, &node, sleeper.raw()) };
    if stays {
        sleeper.leave_stack_and(|| {
            if expires {
                sleeper.settle(sleeper.word.expire(epoch));
            }
        });
        // SAFETY: the node is in this list or in none.
        if !sleeper.word.why().notified && unsafe { round.lock().leave(&node) } {
            return None;
        }
        sleeper.await_landing();
    }
    let led = node.data().led();
    while let Some(ended) = led {
        let next = round.lock().next(ended);
        match next {
            Some(wake) => wake.wake(),
            None => break,
        }
    }
    Some(led.is_some())
}

fn new() -> Arc<Lock<Round>> {
    let round = Arc::new(Lock::new(Round::new()));
    drop(round.lock());
    round
}

/// Hunts: a round that ends with a party that has left it, and one that is left by a party that has passed.
#[test]
fn who_leaves_has_left_and_who_passed_has_passed() {
    check_bounded(3, || {
        let round = new();
        let other = {
            let round = Arc::clone(&round);
            thread::spawn(move || arrive(&round, false))
        };
        let first = arrive(&round, true);
        let mine = first.or_else(|| arrive(&round, false));
        let theirs = other.join().unwrap();
        assert_eq!(mine.unwrap(), !theirs.unwrap(), "one of the two leads");
    });
}

/// Hunts: a party of the next round that is woken by the leader of the one before.
#[test]
fn a_leader_wakes_its_own_round() {
    check_bounded(2, || {
        let round = new();
        let other = {
            let round = Arc::clone(&round);
            thread::spawn(move || [arrive(&round, false), arrive(&round, false)])
        };
        let mine = [arrive(&round, false), arrive(&round, false)];
        let theirs = other.join().unwrap();
        for (mine, theirs) in mine.into_iter().zip(theirs) {
            assert_eq!(mine.unwrap(), !theirs.unwrap(), "each round has one leader");
        }
    });
}
