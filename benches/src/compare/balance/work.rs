//! The work of a task, and the count of pieces left.

use std::hint::{black_box, spin_loop};
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::question::PIECES;

/// How many steps a piece of work has: some 50 to 100 microseconds.
const STEPS: u64 = 40_000;

/// One piece: nothing can shorten it, since each step waits for the one before.
pub(in crate::compare) fn piece() {
    let step = |state: u64, step| black_box(state.wrapping_mul(6_364_136_223_846_793_005) ^ step);
    black_box((0..STEPS).fold(1, step));
}

/// The pieces of work.
pub(in crate::compare) struct Work {
    begun: AtomicU64,
    left: AtomicU64,
    end: OnceLock<Instant>,
}

impl Work {
    pub(in crate::compare) fn new() -> Self {
        Work { begun: AtomicU64::new(0), left: AtomicU64::new(PIECES), end: OnceLock::new() }
    }

    /// Does one piece, if one is left to begin.
    pub(in crate::compare) fn work_on(&self) -> bool {
        // Relaxed: it tells nothing but how many have been begun.
        let is_left = self.begun.fetch_add(1, Relaxed) < PIECES;
        if is_left {
            self.work();
        }
        is_left
    }

    /// Does one piece.
    pub(in crate::compare) fn work(&self) {
        piece();
        // AcqRel: pairs with itself and with the Acquire in `is_done`: the task that does the last piece ends
        // after all others.
        if self.left.fetch_sub(1, AcqRel) == 1 {
            self.end.get_or_init(Instant::now);
        }
    }

    /// Computes until all is done, or for twice as long as one worker would need: a runtime may have a task
    /// that no other worker can take.
    pub(in crate::compare) fn outlast(&self) {
        // Acquire: pairs with the Release in `work`.
        let end = (0..2 * PIECES).find(|_| {
            piece();
            self.left.load(Acquire) == 0
        });
        black_box(end);
    }

    pub(in crate::compare) fn elapsed_since(&self, begin: Instant) -> Duration {
        self.end.get().expect("all is done").duration_since(begin)
    }
}

/// Holds other workers until the tasks have started on this one.
pub(in crate::compare) struct Hold {
    holders: AtomicU64,
    is_over: AtomicBool,
    here: ThreadId,
}

impl Hold {
    /// For the worker that runs the calling task.
    pub(in crate::compare) fn here() -> Self {
        Hold { holders: AtomicU64::new(0), is_over: AtomicBool::new(false), here: thread::current().id() }
    }

    /// Holds a worker.
    pub(in crate::compare) fn hold(&self) {
        // Release: pairs with the Acquire in `wait_for`.
        self.holders.fetch_add(1, Release);
        while !self.is_over() {
            spin_loop();
        }
    }

    /// Computes until so many workers are held.
    pub(in crate::compare) fn wait_for(&self, holders: u64) {
        // Acquire: pairs with the Release in `hold`.
        while self.holders.load(Acquire) < holders {
            spin_loop();
        }
    }

    /// Releases all workers, and returns when.
    pub(in crate::compare) fn end(&self) -> Instant {
        let begin = Instant::now();
        // Release: pairs with the Acquire in `is_over`.
        self.is_over.store(true, Release);
        begin
    }

    pub(in crate::compare) fn is_over(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.is_over.load(Acquire)
    }

    /// Whether the calling task has started where all are to start. A runtime that spreads tasks before they
    /// start has sent some away already.
    pub(in crate::compare) fn is_here(&self) -> bool {
        thread::current().id() == self.here
    }
}
