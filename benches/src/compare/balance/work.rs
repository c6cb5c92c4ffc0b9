//! What a task computes, and who counts what is left to do.

use std::hint::{black_box, spin_loop};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};
use std::time::{Duration, Instant};

use super::question::PIECES;

/// How many steps a piece of work has: some 50 to 100 microseconds.
const STEPS: u64 = 40_000;

/// One piece: nothing can shorten it, since each step waits for the one before.
pub(super) fn piece() {
    let step = |state: u64, step| black_box(state.wrapping_mul(6_364_136_223_846_793_005) ^ step);
    black_box((0..STEPS).fold(1, step));
}

/// Work that is to be done.
pub(super) struct Work {
    left: AtomicU64,
    end: OnceLock<Instant>,
}

impl Work {
    pub(super) fn of(pieces: u64) -> Self {
        Work { left: AtomicU64::new(pieces), end: OnceLock::new() }
    }

    /// Does one piece.
    pub(super) fn work(&self) {
        piece();
        // AcqRel: pairs with itself and with the Acquire in `is_done`: whoever does the last piece ends after all others.
        if self.left.fetch_sub(1, AcqRel) == 1 {
            self.end.get_or_init(Instant::now);
        }
    }

    /// Computes until all is done, or for twice as long as one worker would need: a runtime may have a task that no other
    /// worker can take.
    pub(super) fn outlast(&self) {
        // Acquire: pairs with the Release in `work`.
        let end = (0..2 * PIECES).find(|_| {
            piece();
            self.left.load(Acquire) == 0
        });
        black_box(end);
    }

    pub(super) fn elapsed_since(&self, begin: Instant) -> Duration {
        self.end.get().expect("all is done").duration_since(begin)
    }
}

/// What holds another worker until all tasks have started here.
#[derive(Default)]
pub(super) struct Hold {
    holders: AtomicU64,
    started: AtomicU64,
}

impl Hold {
    /// Holds a worker until `tasks` have started.
    pub(super) fn hold(&self, tasks: u64) {
        self.holders.fetch_add(1, AcqRel);
        // Acquire: pairs with the Release in `start`.
        while self.started.load(Acquire) < tasks {
            spin_loop();
        }
    }

    /// Computes until so many workers are held.
    pub(super) fn wait_for(&self, holders: u64) {
        // Acquire: pairs with the Release in `hold`.
        while self.holders.load(Acquire) < holders {
            spin_loop();
        }
    }

    pub(super) fn start(&self) {
        self.started.fetch_add(1, AcqRel);
    }

    pub(super) fn have_started(&self, tasks: u64) -> bool {
        // Acquire: pairs with the Release in `start`.
        self.started.load(Acquire) >= tasks
    }
}
