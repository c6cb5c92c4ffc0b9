//! A sleeper that waits for two things.

use std::sync::Arc;

use loom::thread;

use crate::primitive::check_bounded;
use crate::wait::list::{List, Node};
use crate::wait::{Claim, Lock, Sleeper};

/// Two semaphores in small, and one sleeper in the lists of both. The nodes belong to the model, which outlives all who
/// touch them.
struct Pair {
    gates: [Lock<Gate>; 2],
    nodes: [Node; 2],
    claim: Claim,
    sleeper: Arc<Sleeper>,
}

struct Gate {
    permits: u32,
    waiters: List,
}

// SAFETY: the lists and the nodes are only touched under their locks.
unsafe impl Sync for Pair {}
// SAFETY: as above.
unsafe impl Send for Pair {}

impl Pair {
    fn new() -> Arc<Self> {
        let pair = Arc::new(Pair {
            gates: [const { Lock::new(Gate { permits: 0, waiters: List::new() }) }; 2],
            nodes: [const { Node::new() }; 2],
            claim: Claim::new(),
            sleeper: Sleeper::new(),
        });
        for (arm, gate) in pair.gates.iter().enumerate() {
            let wake = pair.sleeper.raw();
            // SAFETY: the node is in no list, lives in the model's `Arc` as the claim does, and is only touched under
            // this lock.
            unsafe { gate.lock().waiters.push_back_for(&pair.nodes[arm], wake, &pair.claim, arm) };
        }
        let _ = pair.sleeper.word.begin(false);
        assert_eq!(pair.claim.taken(), None);
        pair
    }

    /// Gives a permit to who waits, or keeps it.
    fn open(&self, arm: usize) {
        let mut gate = self.gates[arm].lock();
        let wake = gate.waiters.pop_front();
        gate.permits += u32::from(wake.is_none());
        drop(gate);
        if let Some(wake) = wake {
            wake.wake();
        }
    }

    fn withdraw(&self) {
        for (node, gate) in self.nodes.iter().zip(&self.gates) {
            // SAFETY: the node is in this list or in none.
            unsafe { gate.lock().waiters.remove(node) };
        }
    }

    fn permits(&self) -> [u32; 2] {
        [0, 1].map(|arm| self.gates[arm].lock().permits)
    }
}

/// Hunts: a sleeper that is woken twice, or given two things; a permit that is lost with the node that was passed over.
#[test]
fn one_of_two_wakers_claims_the_sleeper() {
    check_bounded(3, || {
        let pair = Pair::new();
        let other = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.open(1))
        };
        let first = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.open(0))
        };
        pair.sleeper.leave_stack();
        pair.withdraw();
        let arm = pair.claim.close().expect("it was woken by the one who took the claim");
        other.join().unwrap();
        first.join().unwrap();
        pair.sleeper.assert_even();
        let mut permits = pair.permits();
        permits[arm] += 1;
        assert_eq!(permits, [1, 1], "what the sleeper did not take is still there");
    });
}

/// Hunts: a permit that is given to a sleeper whose time has run out, or kept by nobody.
#[test]
fn a_claim_is_taken_or_closed() {
    check_bounded(3, || {
        let pair = Pair::new();
        let opener = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.open(0))
        };
        // The deadline has passed: the sleeper is on its stack again.
        let taken = pair.claim.close();
        pair.withdraw();
        if taken.is_some() {
            pair.sleeper.await_landing();
        }
        opener.join().unwrap();
        assert_eq!(pair.permits()[0], u32::from(taken.is_none()));
    });
}
