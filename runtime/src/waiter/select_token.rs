//! A wait for several things at once, of which only one may wake the sleeper.
//!
//! ```text
//!             take(arm)
//!   OPEN ───────────────▶ arm + 1     by a waker, under the lock of the list that it found the node in
//!     │
//!     └──▶ CLOSED                     by the sleeper: its time ran out, or it goes on for a reason of its own
//!           close
//! ```
//!
//! The sleeper has a node in the list of each thing it waits for, and all of them point to one claim on its stack. Who
//! pops such a node takes the claim before anything is given to the sleeper; who comes too late goes on to the next node,
//! so that nothing is given to a sleeper that has something already. The one who took it owns the one wake of this sleep.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicU64, Ordering};

const OPEN: u64 = 0;
const CLOSED: u64 = u64::MAX;

/// The claim on one sleeper.
pub struct Claim(AtomicU64);

impl Claim {
    /// Makes a claim that nobody has taken.
    pub const fn new() -> Self {
        Claim(AtomicU64::new(OPEN))
    }

    /// Takes the sleeper for its arm `arm`. True for the first.
    pub fn take(&self, arm: usize) -> bool {
        // Release: pairs with the Acquire in `close`. Acquire: what the sleeper published before is seen.
        self.0.compare_exchange(OPEN, arm as u64 + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// True while it is neither taken nor closed.
    pub(crate) fn is_open(&self) -> bool {
        // Relaxed: a look, after which only `take` decides.
        self.0.load(Ordering::Relaxed) == OPEN
    }

    /// The arm that the sleeper was taken for, if it was.
    pub fn taken(&self) -> Option<usize> {
        // Acquire: pairs with the Release in `take`.
        match self.0.load(Ordering::Acquire) {
            OPEN | CLOSED => None,
            taken => Some((taken - 1) as usize),
        }
    }

    /// Ends the wait, by the sleeper. The arm that was taken before, if one was: its wake has come or is on its way.
    pub fn close(&self) -> Option<usize> {
        // Acquire: pairs with the Release in `take`.
        match self.0.compare_exchange(OPEN, CLOSED, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) | Err(CLOSED) => None,
            Err(taken) => Some((taken - 1) as usize),
        }
    }
}

impl Default for Claim {
    fn default() -> Self {
        Self::new()
    }
}
