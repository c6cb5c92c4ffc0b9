//! Task counts: how many tasks of a runtime are alive.
//!
//! Spawned and ended tasks are counted per worker, without locked instructions, and in one more
//! place for all that are spawned or end off the workers. The sums are taken all ended first, then
//! all spawned. If they are equal, no task was alive at the moment between the two. For a counter
//! only grows: at that moment at least the summed number had ended, and at most the summed number
//! had been spawned.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicU64, Ordering, fence};

/// Counts the tasks that were spawned in one place, and those that ended there.
#[derive(Default)]
pub(crate) struct Counts {
    spawned: AtomicU64,
    finished: AtomicU64,
}

impl Counts {
    /// Counts a spawned task. Called by the worker that alone writes here.
    #[inline]
    pub(crate) fn spawn(&self) {
        bump(&self.spawned);
    }

    /// Counts an ended task. Called by the worker that alone writes here.
    #[inline]
    pub(crate) fn finish(&self) {
        bump(&self.finished);
    }

    /// Counts a spawned task in a place that any thread may write.
    pub(crate) fn spawn_outside(&self) {
        // SeqCst: the store of the pair in `Ending::admit`.
        self.spawned.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts an ended task in a place that any thread may write.
    pub(crate) fn finish_outside(&self) {
        self.finished.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns how many were spawned here; a hint.
    pub(crate) fn spawned(&self) -> u64 {
        // Relaxed: nothing is published by it.
        self.spawned.load(Ordering::Relaxed)
    }

    /// Returns how many ended here; a hint.
    pub(crate) fn finished(&self) -> u64 {
        // Relaxed: as above.
        self.finished.load(Ordering::Relaxed)
    }
}

/// Adds to a counter that only the caller writes: no locked instruction.
#[inline]
fn bump(counter: &AtomicU64) {
    // Release: pairs with the Acquire (as part of SeqCst) of the loads in the sums.
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Release);
}

/// Returns how many tasks are alive: maybe too many while some end, never too few.
pub(crate) fn alive<'a>(places: impl Iterator<Item = &'a Counts> + Clone) -> u64 {
    // The store-load pair of two workers that end their last tasks at the same moment. Each has
    // counted its own before, so one of them sees the count of its counterpart.
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
