//! What a worker notes of runs and wakes, which of them it measures, and where it records them.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::hint::cold_path;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::scheduler::event::{Event, Track};

/// Tells what a worker notes, in one byte for the loop to test.
pub(super) struct Observed(Cell<u8>);

impl Observed {
    /// A thread watches how long tasks run.
    const WATCHED: u8 = 1;
    /// There are histograms.
    const MEASURED: u8 = 1 << 1;
    /// There is a recorder.
    const TRACED: u8 = 1 << 2;

    pub(super) fn new(is_watched: bool, is_measured: bool) -> Self {
        let bit = |bit, is_set| if is_set { bit } else { 0 };
        Observed(Cell::new(bit(Self::WATCHED, is_watched) | bit(Self::MEASURED, is_measured)))
    }

    #[inline(always)]
    fn has(&self, bits: u8) -> bool {
        self.0.get() & bits != 0
    }

    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        self.has(u8::MAX)
    }

    /// Returns true if wakes and spawns are noted.
    #[inline(always)]
    pub(super) fn is_noted(&self) -> bool {
        self.has(Self::MEASURED | Self::TRACED)
    }

    #[inline(always)]
    pub(super) fn is_traced(&self) -> bool {
        self.has(Self::TRACED)
    }

    pub(super) fn set_traced(&self, is_traced: bool) {
        let others = self.0.get() & !Self::TRACED;
        self.0.set(others | if is_traced { Self::TRACED } else { 0 });
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
pub(crate) struct TrackSlot {
    has_changed: AtomicBool,
    track: Mutex<Option<Arc<Track>>>,
}

impl TrackSlot {
    /// Sets the track, or that there is none. The worker takes that up when it next looks for events, within 128 runs.
    pub(crate) fn set(&self, track: Option<Arc<Track>>) {
        *self.track.lock().unwrap_or_else(PoisonError::into_inner) = track;
        // Release: pairs with the Acquire in `take_change`, which then finds this track or a later one.
        self.has_changed.store(true, Ordering::Release);
    }

    /// Returns the track if it was set since the last call.
    #[inline]
    pub(super) fn take_change(&self) -> Option<Option<Arc<Track>>> {
        // Relaxed: the swap decides. A flag that is seen late is found at the next look.
        if !self.has_changed.load(Ordering::Relaxed) {
            return None;
        }
        cold_path();
        // Acquire: as in `set`.
        self.has_changed.swap(false, Ordering::Acquire);
        Some(self.track.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Makes the event that tells why a task is ready.
type Cause = fn(u64) -> Event;

/// The worker's side of a recording.
#[derive(Default)]
pub(super) struct Tracer {
    pub(super) track: RefCell<Option<Arc<Track>>>,
    /// The last reading of the counter, unless much was done since; else 0.
    pub(super) recent: Cell<u64>,
    /// Why tasks are made ready, other than by a wake of the present task or of the driver.
    pub(super) cause: Cell<Option<Cause>>,
}

impl Tracer {
    /// Says that time passes, so that the next run reads the counter again.
    pub(super) fn time_passes(&self) {
        self.recent.set(0);
    }
}
