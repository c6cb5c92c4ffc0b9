//! How many tasks of a runtime are alive.
//!
//! Spawned and ended ones are counted per worker, without locked instructions, and in one place more for all that are spawned
//! or end off the workers. The sums are taken all ended first, then all spawned. If they are equal, then at the moment between
//! the two nobody was alive: a counter only grows, so at that moment at least so many had ended as were summed, and at most so
//! many had been spawned.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicU64, Ordering, fence};

/// How many tasks were spawned in one place, and how many have ended there.
#[derive(Default)]
pub(crate) struct Counts {
    spawned: AtomicU64,
    finished: AtomicU64,
}

impl Counts {
    /// Counts a task that was spawned, by the worker who alone writes here.
    #[inline]
    pub(crate) fn spawn(&self) {
        bump(&self.spawned);
    }

    /// Counts a task that has ended, by the same.
    #[inline]
    pub(crate) fn finish(&self) {
        bump(&self.finished);
    }

    /// Counts a task that was spawned, where anybody may write.
    pub(crate) fn spawn_outside(&self) {
        // SeqCst: the store of the pair in `Ending::admit`.
        self.spawned.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a task that has ended, in such a place.
    pub(crate) fn finish_outside(&self) {
        self.finished.fetch_add(1, Ordering::SeqCst);
    }

    /// How many were spawned here; a hint.
    pub(crate) fn spawned(&self) -> u64 {
        // Relaxed: nothing is published by it.
        self.spawned.load(Ordering::Relaxed)
    }
}

/// Adds to a counter that only the caller writes: no locked instruction.
#[inline]
fn bump(counter: &AtomicU64) {
    // Release: pairs with the Acquire of who sums.
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Release);
}

/// How many tasks were spawned and have not ended; may be too many while some end, never too few.
pub(crate) fn alive<'a>(places: impl Iterator<Item = &'a Counts> + Clone) -> u64 {
    // The store-load pair of two workers that end their last tasks at the same moment: each has counted its own
    // before, so one of them sees the other's.
    fence(Ordering::SeqCst);
    let finished = finished(places.clone());
    fence(Ordering::SeqCst);
    spawned(places) - finished
}

pub(crate) fn finished<'a>(places: impl Iterator<Item = &'a Counts>) -> u64 {
    places.map(|counts| counts.finished.load(Ordering::SeqCst)).sum()
}

pub(crate) fn spawned<'a>(places: impl Iterator<Item = &'a Counts>) -> u64 {
    places.map(|counts| counts.spawned.load(Ordering::SeqCst)).sum()
}
