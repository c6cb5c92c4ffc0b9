//! The spin lock, and the list under it.

use std::sync::Arc;

use loom::thread;

use crate::primitive::check_bounded;
use crate::wait::list::{List, Node};
use crate::wait::{Lock, RawWake, Sleeper};

/// Finds: two holders at once, or a holder that does not see what the last one wrote.
#[test]
fn one_holder_at_a_time() {
    check_bounded(3, || {
        let lock = Arc::new(Lock::new(0));
        drop(lock.lock());
        let add = |lock: &Lock<i32>| {
            for _ in 0..2 {
                *lock.lock() += 1;
            }
        };
        let other = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || add(&lock))
        };
        add(&lock);
        other.join().unwrap();
        assert_eq!(*lock.lock(), 4);
    });
}

/// Three sleepers in one list. The nodes belong to the model, which outlives all threads that touch them.
struct Queue {
    list: Lock<List>,
    nodes: [Node; 3],
}

// SAFETY: the list and the nodes are only touched under the lock.
unsafe impl Sync for Queue {}
// SAFETY: as above.
unsafe impl Send for Queue {}

impl Queue {
    fn new(sleepers: &[Arc<Sleeper>; 3]) -> Arc<Self> {
        let nodes = [const { Node::new() }; 3];
        let queue = Arc::new(Queue { list: Lock::new(List::new()), nodes });
        for (node, sleeper) in queue.nodes.iter().zip(sleepers) {
            let _ = sleeper.word.begin(false);
            // SAFETY: the node is in no list, lives in the model's `Arc`, and is only touched under the lock.
            unsafe { queue.list.lock().push_back(node, sleeper.raw()) };
        }
        queue
    }

    fn pop(&self) -> Option<RawWake> {
        self.list.lock().pop_front()
    }

    fn remove(&self, index: usize) -> bool {
        // SAFETY: the node is in this list or in none.
        unsafe { self.list.lock().remove(&self.nodes[index]) }
    }
}

/// Finds: a node that is popped by a waker and withdrawn by its sleeper, or neither; a neighbour that is lost with it; an
/// order other than that of the arrivals.
#[test]
fn a_node_is_popped_or_withdrawn() {
    check_bounded(3, || {
        let sleepers: [_; 3] = std::array::from_fn(|_| Sleeper::new());
        let queue = Queue::new(&sleepers);
        let withdrawing = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.remove(1))
        };
        let popping = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.pop().into_iter().chain(queue.pop()).collect::<Vec<_>>())
        };
        let withdrawn = withdrawing.join().unwrap();
        let popped = popping.join().unwrap();
        assert_eq!(popped.len(), 2);
        let left = std::iter::from_fn(|| queue.pop());
        let served: Vec<_> = popped.into_iter().chain(left).map(|wake| woken(&sleepers, wake)).collect();
        assert_eq!(served, if withdrawn { vec![0, 2] } else { vec![0, 1, 2] });
        assert!(queue.list.lock().is_empty());
    });
}

/// Which of them that wakes.
fn woken(sleepers: &[Arc<Sleeper>; 3], wake: RawWake) -> usize {
    let slept = sleepers.each_ref().map(|sleeper| !sleeper.word.why().notified);
    wake.wake();
    let woken = |index: &usize| slept[*index] && sleepers[*index].word.why().notified;
    (0..3).find(woken).expect("one of them")
}
