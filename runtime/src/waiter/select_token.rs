//! The select token: a wait for several things, of which only one may wake the sleeper.
//!
//! ```text
//!             take(arm)
//!   OPEN ───────────────▶ arm + 1     by a waker, under the lock of the list that it found the node in
//!     │
//!     └──▶ CLOSED                     by the sleeper, on a timeout or when it goes on for another reason
//!           close
//! ```
//!
//! The sleeper has a node in the list of each thing it waits for. All of them point to one token on
//! its stack. A waker that pops such a node takes the token before it gives anything to the
//! sleeper. A waker that comes too late goes on to the next node, so a sleeper never gets two
//! things. The waker that took the token owns the one wake of this sleep.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicU64, Ordering};

const OPEN: u64 = 0;
const CLOSED: u64 = u64::MAX;

/// Decides which waker may wake one sleeper.
pub struct Claim(AtomicU64);

impl Claim {
    /// Makes an open token.
    pub const fn new() -> Self {
        Claim(AtomicU64::new(OPEN))
    }

    /// Takes the sleeper for its arm `arm`. Returns true for the first caller.
    pub fn take(&self, arm: usize) -> bool {
        // Release: pairs with the Acquire in `close` and `taken`. Acquire: sees what the sleeper
        // published before.
        self.0.compare_exchange(OPEN, arm as u64 + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns true while the token is neither taken nor closed.
    pub(crate) fn is_open(&self) -> bool {
        // Relaxed: a hint; only `take` decides.
        self.0.load(Ordering::Relaxed) == OPEN
    }

    /// Returns the arm that the sleeper was taken for, if any.
    pub fn taken(&self) -> Option<usize> {
        // Acquire: pairs with the Release in `take`.
        match self.0.load(Ordering::Acquire) {
            OPEN | CLOSED => None,
            taken => Some((taken - 1) as usize),
        }
    }

    /// Ends the wait. Called by the sleeper.
    ///
    /// Returns the arm that was taken before, if any: its wake has come or is on its way.
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
