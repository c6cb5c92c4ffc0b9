//! The word of the idle protocol: how many workers are parked, searching, watching.
//!
//! ```text
//!  63        48 47         32 31          16 15         0
//! ┌────────────┬─────────────┬──────────────┬────────────┐
//! │ (unused)   │ watching    │ searching    │ parked     │
//! └────────────┴─────────────┴──────────────┴────────────┘
//! ```
//!
//! All writes are read-modify-writes, and all are sequentially consistent: the README tells which pairs need it.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicU64, Ordering};

const ONE_PARKED: u64 = 1;
const ONE_SEARCHING: u64 = 1 << 16;
const ONE_WATCHING: u64 = 1 << 32;
const FIELD_MASK: u64 = 0xffff;

/// The counters of one runtime.
pub(crate) struct Counters(AtomicU64);

/// The counters at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    pub(crate) parked: u64,
    pub(crate) searching: u64,
    pub(crate) watching: u64,
}

impl Snapshot {
    fn of(bits: u64) -> Self {
        Snapshot {
            parked: bits & FIELD_MASK,
            searching: (bits / ONE_SEARCHING) & FIELD_MASK,
            watching: (bits / ONE_WATCHING) & FIELD_MASK,
        }
    }

    /// Returns true when a producer has to wake a worker: one can be woken, and none will look by
    /// itself.
    pub(crate) fn wants_wake(self) -> bool {
        self.parked > 0 && self.searching == 0 && self.watching == 0
    }

    /// Returns true when a producer has to wake a worker for work that a watcher would see too
    /// late.
    pub(crate) fn wants_wake_at_once(self) -> bool {
        self.parked > 0 && self.searching == 0
    }
}

impl Counters {
    pub(crate) fn new() -> Self {
        Counters(AtomicU64::new(0))
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.0.load(Ordering::SeqCst))
    }

    /// Enters the search, unless half of `workers` search already.
    pub(crate) fn try_search(&self, workers: u64) -> bool {
        let mut seen = self.0.load(Ordering::SeqCst);
        loop {
            if 2 * Snapshot::of(seen).searching >= workers {
                return false;
            }
            match self.0.compare_exchange(seen, seen + ONE_SEARCHING, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Leaves the search. Returns true for the last worker to leave.
    pub(crate) fn end_search(&self) -> bool {
        Snapshot::of(self.0.fetch_sub(ONE_SEARCHING, Ordering::SeqCst)).searching == 1
    }

    /// Moves a worker from running or searching to parked. The caller then checks the queues again.
    pub(crate) fn park(&self, searching: bool, watching: bool) {
        let change = ONE_PARKED + u64::from(watching) * ONE_WATCHING;
        // One addition, also where a field falls: the fields are never below what is taken from them.
        self.0.fetch_add(change.wrapping_sub(u64::from(searching) * ONE_SEARCHING), Ordering::SeqCst);
    }

    /// Moves a worker from parked to running (by the worker itself) or to searching (by the thread
    /// that wakes it).
    pub(crate) fn unpark(&self, watching: bool, searching: bool) {
        let change = (u64::from(searching) * ONE_SEARCHING).wrapping_sub(ONE_PARKED);
        self.0.fetch_add(change.wrapping_sub(u64::from(watching) * ONE_WATCHING), Ordering::SeqCst);
    }
}
