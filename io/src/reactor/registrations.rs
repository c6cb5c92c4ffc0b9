//! The sources of one reactor, by token, and whether it is still there.
//!
//! ```text
//!   open ──insert, remove──▶ open
//!     │
//!     └── close ──▶ closed for good: hands out its sources, to be woken
//! ```
//!
//! A token is a key into the slab and a generation, so that an event that was fetched before its descriptor left is recognised as
//! stale, also after the key is used again.
//!
//! `close` sets the mark and then empties the slab, under its lock. A registration from another worker enters
//! the slab under that lock, and then reads the mark. So either `close` hands the source out, or the
//! registering worker sees the mark.

#![forbid(unsafe_code)]

use std::io;
use std::sync::{Arc, PoisonError};

use slab::Slab;

use crate::primitive::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::readiness::source::Source;

/// Bits of a token that hold the slab's key; the others hold the generation.
pub(crate) const KEY_BITS: u32 = if usize::BITS == 64 { 32 } else { 20 };
pub(crate) const KEY_MASK: usize = (1 << KEY_BITS) - 1;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Registrations {
    entries: Mutex<Entries>,
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

    pub(crate) fn insert(&self, source: &Arc<Source>) -> io::Result<usize> {
        self.change(|entries| entries.insert(source))
    }

    /// Takes a source out. It is dropped after the lock is released.
    pub(crate) fn remove(&self, token: usize) {
        drop(self.change(|entries| entries.remove(token)));
    }

    /// Takes every source out, so that reactor and sources do not keep each other alive.
    pub(crate) fn close(&self) -> Vec<Arc<Source>> {
        self.change(|entries| {
            // Release: pairs with the Acquire in `is_closed`. A waiter woken by the closing edge of its
            // source, or one that clears the word after that edge, sees the mark and registers elsewhere.
            // Under the lock: a worker that sees the mark and removes its source does so after the source was
            // handed out.
            self.closed.store(true, Ordering::Release);
            entries.drain()
        })
    }

    /// The lock is held for as long as a batch of events lasts, and for no system call.
    pub(crate) fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Entries) -> T) -> T {
        let mut entries = self.entries();
        let outcome = change(&mut entries);
        // Relaxed: see `is_empty`.
        self.population.store(entries.slab.len(), Ordering::Relaxed);
        outcome
    }
}

/// The sources themselves.
#[derive(Default)]
pub(crate) struct Entries {
    slab: Slab<Entry>,
    /// Generation of the entry made last.
    pub(crate) generation: usize,
}

struct Entry {
    generation: usize,
    source: Arc<Source>,
}

impl Entries {
    pub(crate) fn insert(&mut self, source: &Arc<Source>) -> io::Result<usize> {
        let vacant = self.slab.vacant_entry();
        if vacant.key() >= KEY_MASK {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "too many descriptors on one worker"));
        }
        self.generation = self.generation.wrapping_add(1) & (usize::MAX >> KEY_BITS);
        let token = self.generation << KEY_BITS | vacant.key();
        vacant.insert(Entry { generation: self.generation, source: Arc::clone(source) });
        Ok(token)
    }

    /// The source that `token` was made for, if it is still here.
    pub(crate) fn find(&self, token: usize) -> Option<&Arc<Source>> {
        let entry = self.slab.get(token & KEY_MASK)?;
        (entry.generation == token >> KEY_BITS).then_some(&entry.source)
    }

    pub(crate) fn remove(&mut self, token: usize) -> Option<Arc<Source>> {
        self.find(token)?;
        Some(self.slab.remove(token & KEY_MASK).source)
    }

    fn drain(&mut self) -> Vec<Arc<Source>> {
        self.slab.drain().map(|entry| entry.source).collect()
    }
}
