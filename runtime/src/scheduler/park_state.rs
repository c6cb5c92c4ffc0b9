//! The park state of a worker: whether a thread that gave it work has to wake it.
//!
//! ```text
//!   RUNNING ──begin_park──▶ PARKED ──unpark (any thread)──▶ NOTIFIED ──end_park──▶ RUNNING
//!      │                      └──────────────end_park────────────────────────────────▲
//!      └──────────────────────────unpark (any thread)──────────▶ NOTIFIED ──end_park─┘
//! ```
//!
//! A push and the look at this state that follows it ([`ParkState::is_parked`]) are a store-load pair with the worker's
//! [`ParkState::begin_park`] and its look at the queues after it. All four are sequentially
//! consistent, so one side sees the other's store. A notice that comes while the worker runs makes
//! its next `begin_park` fail.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicU8, Ordering};

const RUNNING: u8 = 0;
const PARKED: u8 = 1;
const NOTIFIED: u8 = 2;

/// Holds the park state of one worker.
pub(crate) struct ParkState(AtomicU8);

/// Tells what an unpark found.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The worker is in its park, and the caller breaks it.
    Parked,
    /// The worker runs, or another caller breaks its park. It looks again before its next park.
    Awake,
}

impl ParkState {
    pub(crate) const fn new() -> Self {
        ParkState(AtomicU8::new(RUNNING))
    }

    /// Returns true if an unpark is owed after work was put where the worker looks.
    pub(crate) fn is_parked(&self) -> bool {
        // SeqCst: the load of the pair.
        self.0.load(Ordering::SeqCst) == PARKED
    }

    /// Asks the worker to look again. Callable from any thread.
    pub(crate) fn unpark(&self) -> Found {
        // SeqCst: the load of the pair. As a Release it pairs with the Acquire in `begin_park` and `end_park`.
        match self.0.swap(NOTIFIED, Ordering::SeqCst) {
            PARKED => Found::Parked,
            _ => Found::Awake,
        }
    }

    /// Announces a park: from now on other threads have to break it. Called by the worker.
    ///
    /// Returns false if a notice has come already.
    #[must_use]
    pub(crate) fn begin_park(&self) -> bool {
        // SeqCst: the store of the pair.
        self.0.compare_exchange(RUNNING, PARKED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Ends the park, and takes a notice away so that it does not end the next park too.
    ///
    /// Called by the worker.
    pub(crate) fn end_park(&self) {
        // Acquire: pairs with the Release in `unpark`; what the notice was for is seen by the look that follows.
        self.0.swap(RUNNING, Ordering::Acquire);
    }
}
