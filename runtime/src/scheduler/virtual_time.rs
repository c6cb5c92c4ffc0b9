//! What forbids virtual time to move, and the deadlock that it has come to. `jumps.rs` moves it.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    /// The worker of a paused clock has found a hold, and waits for the last one to go.
    stands: AtomicBool,
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
        let holds =
            Holds { count: AtomicUsize::new(0), stands: AtomicBool::new(false), block: Arc::clone(block) };
        VirtualTime { holds: Arc::new(holds), deadlock: Mutex::new(None) }
    }

    pub(crate) fn hold(&self) -> Hold {
        // Relaxed: the holder is what the worker waits for, or has been started by a task of it.
        self.holds.count.fetch_add(1, Ordering::Relaxed);
        Hold(Arc::clone(&self.holds))
    }

    /// Returns true if there is a hold: something outside may wake a task.
    pub(crate) fn is_held(&self) -> bool {
        // Relaxed: for reports.
        self.holds.count.load(Ordering::Relaxed) > 0
    }

    /// Returns true if a hold keeps the clock. The last one to go then wakes the worker.
    pub(super) fn stands(&self) -> bool {
        let holds = &self.holds;
        // SeqCst, both: the pair with `Hold::drop`. As an Acquire the load pairs with the Release there, so the wakes that
        // holders made before they let go are seen.
        holds.stands.store(true, Ordering::SeqCst);
        let stands = holds.count.load(Ordering::SeqCst) > 0;
        holds.stands.store(stands, Ordering::SeqCst);
        stands
    }

    /// Returns true if the clock stood at the last look, and all holds are gone.
    pub(super) fn stood(&self) -> bool {
        // SeqCst: as in `stands`.
        self.holds.stands.load(Ordering::SeqCst) && self.holds.count.load(Ordering::SeqCst) == 0
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
        let holds = &self.0;
        // SeqCst, all, in two store-load pairs with the worker. This stores the count and then loads `stands`, the worker
        // stores `stands` and then loads the count. And this loads the park state then, where the worker stores it and looks
        // at the count again (`Worker::may_jump`). So the worker sees the last hold go, or is woken.
        if holds.count.fetch_sub(1, Ordering::SeqCst) == 1 && holds.stands.load(Ordering::SeqCst) {
            holds.block.unpark_if_parked();
        }
    }
}
