//! The rounds of the barrier, over the wait queue.

use std::sync::Arc;

use loom::thread;

use crate::primitive::check_bounded;
use crate::typed::barrier::Barrier;
use crate::wait;

/// Finds: a round that ends with a party that has left it, and a departure that takes back a passed party.
#[test]
fn a_party_either_leaves_or_passes() {
    check_bounded(3, || {
        let barrier = Arc::new(Barrier::new(2));
        let other = {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || barrier.wait().is_leader())
        };
        let first = barrier.wait_deadline(wait::over());
        let mine = first.unwrap_or_else(|| barrier.wait()).is_leader();
        assert_eq!(mine, !other.join().unwrap(), "one of the two leads");
    });
}

/// Finds: a party of the next round that is woken by the leader of the round before.
#[test]
fn a_leader_wakes_its_own_round() {
    check_bounded(2, || {
        let barrier = Arc::new(Barrier::new(2));
        let other = {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || [barrier.wait().is_leader(), barrier.wait().is_leader()])
        };
        let mine = [barrier.wait().is_leader(), barrier.wait().is_leader()];
        for (mine, theirs) in mine.into_iter().zip(other.join().unwrap()) {
            assert_eq!(mine, !theirs, "each round has one leader");
        }
    });
}
