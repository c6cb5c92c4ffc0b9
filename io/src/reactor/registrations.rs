//! The sources of one reactor, by token, and whether it is still there.
//!
//! ```text
//!   open ──insert, remove──▶ open
//!     │
//!     └── close ──▶ closed for good: hands out its sources, to be woken
//! ```
//!
//! A token is a key into the slab. An event that was fetched before its descriptor left may find a later source under the
//! key. That source hears an edge too many: its next call finds out, as after any edge whose data another task has taken.
//! If the edge told of a hang-up, the source keeps that for good: from then on it asks the system once more after each short
//! read, as one whose peer has ended.
//!
//! `close` sets the mark and then empties the slab, under its lock. A registration from another worker enters
//! the slab under that lock, and then reads the mark. So either `close` hands the source out, or the
//! registering worker sees the mark.

#![forbid(unsafe_code)]

use std::sync::{Arc, PoisonError};

use slab::Slab;

use crate::primitive::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::readiness::source::Source;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Registrations {
    entries: Mutex<Slab<Arc<Source>>>,
    /// A hint for each look: how many sources there are.
    population: AtomicUsize,
    closed: AtomicBool,
}

impl Registrations {
    /// True once the reactor is gone: no edge will come from here.
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.closed.load(Ordering::Acquire)
    }

    /// Returns true if it has no sources.
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: a hint. A look that comes too early for a source that another thread registers is followed by one that does not,
        // and a park of any length asks the system.
        self.population.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn insert(&self, source: &Arc<Source>) -> usize {
        self.change(|entries| entries.insert(Arc::clone(source)))
    }

    /// Takes a source out, unless `close` has. It is dropped after the lock is released.
    pub(crate) fn remove(&self, token: usize) {
        drop(self.change(|entries| entries.try_remove(token)));
    }

    /// Takes every source out, so that reactor and sources do not keep each other alive.
    pub(crate) fn close(&self) -> Vec<Arc<Source>> {
        self.change(|entries| {
            // Release: pairs with the Acquire in `is_closed`. A waiter woken by the closing edge of its
            // source, or one that clears the word after that edge, sees the mark and registers elsewhere.
            // Under the lock: a worker that sees the mark and removes its source does so after the source was
            // handed out.
            self.closed.store(true, Ordering::Release);
            entries.drain().collect()
        })
    }

    /// The lock is held for as long as a batch of events lasts, and for no system call.
    pub(crate) fn entries(&self) -> MutexGuard<'_, Slab<Arc<Source>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Slab<Arc<Source>>) -> T) -> T {
        let mut entries = self.entries();
        let outcome = change(&mut entries);
        // Relaxed: see `is_empty`.
        self.population.store(entries.len(), Ordering::Relaxed);
        outcome
    }
}
