//! What a worker notes of runs and wakes, which of them it measures, and where it records them.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::scheduler::event::{Event, Track};

/// Tells what a worker notes, in one byte for the loop to test.
pub(crate) struct Observed(AtomicU8);

impl Observed {
    /// A thread watches how long tasks run.
    const WATCHED: u8 = 1;
    /// There are histograms.
    const MEASURED: u8 = 1 << 1;
    /// There is a recorder.
    const TRACED: u8 = 1 << 2;
    /// The recorder is new or gone, and the worker has not noticed.
    const CHANGED: u8 = 1 << 3;

    pub(crate) fn new(is_watched: bool, is_measured: bool) -> Self {
        let bit = |bit, is_set| if is_set { bit } else { 0 };
        Observed(AtomicU8::new(bit(Self::WATCHED, is_watched) | bit(Self::MEASURED, is_measured)))
    }

    #[inline(always)]
    fn has(&self, bits: u8) -> bool {
        // Relaxed: what comes with a change is read after `takes_change`.
        self.0.load(Ordering::Relaxed) & bits != 0
    }

    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        self.has(u8::MAX)
    }

    pub(super) fn is_watched(&self) -> bool {
        self.has(Self::WATCHED)
    }

    /// Returns true if wakes and spawns are noted.
    #[inline(always)]
    pub(super) fn is_noted(&self) -> bool {
        self.has(Self::MEASURED | Self::TRACED | Self::CHANGED)
    }

    #[inline(always)]
    pub(super) fn is_traced(&self) -> bool {
        self.has(Self::TRACED | Self::CHANGED)
    }

    /// Says that there is a recorder now, or none. Called by any thread.
    pub(super) fn set_traced(&self, is_traced: bool) {
        if !is_traced {
            self.0.fetch_and(!Self::TRACED, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `takes_change`.
        self.0.fetch_or(Self::CHANGED | if is_traced { Self::TRACED } else { 0 }, Ordering::Release);
    }

    /// Returns true if the recorder has changed since the last call. Called by the worker.
    pub(super) fn takes_change(&self) -> bool {
        // Acquire: pairs with the Release in `set_traced`.
        self.has(Self::CHANGED) && self.0.fetch_and(!Self::CHANGED, Ordering::Acquire) & Self::CHANGED != 0
    }
}

/// Chooses the runs and wakes that are measured.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) runs: Countdown,
    pub(super) wakes: Countdown,
    /// While the worker takes tasks that other threads have woken: when the first of them came. Else 0.
    pub(super) arrived: Cell<u64>,
}

/// How many are left out before the next.
#[derive(Default)]
pub(super) struct Countdown(Cell<u32>);

impl Countdown {
    /// Returns true once in `every` calls.
    pub(super) fn is_due(&self, every: NonZeroU32) -> bool {
        let left = self.0.get();
        self.0.set(left.checked_sub(1).unwrap_or(every.get() - 1));
        left == 0
    }
}

/// The track that a worker is to record on: set by a recorder, taken up by the worker.
#[derive(Default)]
pub(crate) struct TrackSlot(Mutex<Option<Arc<Track>>>);

impl TrackSlot {
    pub(super) fn set(&self, track: Option<Arc<Track>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = track;
    }

    pub(super) fn get(&self) -> Option<Arc<Track>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The worker's side of a recording.
pub(super) struct Tracer {
    pub(super) track: RefCell<Option<Arc<Track>>>,
    /// The last reading of the counter, unless much was done since; else 0.
    pub(super) recent: Cell<u64>,
    /// Why tasks are made ready.
    pub(super) cause: Cell<fn(u64) -> Event>,
}

impl Default for Tracer {
    fn default() -> Self {
        Tracer { track: RefCell::default(), recent: Cell::default(), cause: Cell::new(Event::Wakes) }
    }
}

impl Tracer {
    /// Says that time passes, so that the next run reads the counter again.
    pub(super) fn time_passes(&self) {
        self.recent.set(0);
    }
}
