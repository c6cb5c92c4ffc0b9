//! What forbids virtual time to move, and the deadlock that it has come to. `jumps.rs` moves it.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::scheduler::block::Block;

/// The part of a runtime that virtual time needs.
pub(crate) struct VirtualTime {
    holds: Arc<Holds>,
    /// What all tasks waited for when none could be woken any more.
    deadlock: Mutex<Option<String>>,
}

/// Counts what forbids the clock to move.
struct Holds {
    count: AtomicUsize,
    /// The worker, which waits for the last hold.
    block: Arc<Block>,
}

/// Keeps virtual time where it is until it is dropped.
///
/// [`hold`](crate::time::hold) takes one.
#[must_use = "time is held until this is dropped"]
pub struct Hold(Arc<Holds>);

impl VirtualTime {
    /// Makes the part for a runtime whose first worker has that block.
    pub(crate) fn new(block: &Arc<Block>) -> Self {
        let holds = Holds { count: AtomicUsize::new(0), block: Arc::clone(block) };
        VirtualTime { holds: Arc::new(holds), deadlock: Mutex::new(None) }
    }

    pub(crate) fn hold(&self) -> Hold {
        // Relaxed: the holder is what the worker waits for, or has been started by a task of it.
        self.holds.count.fetch_add(1, Ordering::Relaxed);
        Hold(Arc::clone(&self.holds))
    }

    pub(crate) fn is_held(&self) -> bool {
        // SeqCst: the load of the pair in `Hold::drop`. Acquire: pairs with the Release there, so wakes before the drop
        // are seen.
        self.holds.count.load(Ordering::SeqCst) > 0
    }

    /// Returns what all tasks waited for, if the runtime has come to a deadlock.
    pub(crate) fn take_deadlock(&self) -> Option<String> {
        self.deadlock.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn set_deadlock(&self, waits: String) {
        *self.deadlock.lock().unwrap_or_else(PoisonError::into_inner) = Some(waits);
    }

    pub(super) fn has_deadlock(&self) -> bool {
        self.deadlock.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // SeqCst: the store of the pair with `begin_park` and the worker's second look in `Worker::may_jump`: this stores the
        // count and then loads the park state, the worker the other way about. So the worker does not park, or is woken.
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.block.unpark_if_parked();
        }
    }
}
