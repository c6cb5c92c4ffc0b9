//! The owners of a task: its handle, its runtime, the clones of `Task`, the retained wakes.
//!
//! ```text
//!             retain: by the owner of one             release
//!   2 ◀──────────────────────────────────▶ n ─────────────────────▶ 1 ─────────────────▶ 0: the last one frees it
//!   handle and runtime                                                 the only owner: needs no exchange
//! ```

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicU32, Ordering, fence};

/// Counts the owners of one task.
pub(crate) struct Refs(AtomicU32);

impl Refs {
    /// Starts with two owners: the handle and the runtime.
    pub(crate) const fn two() -> Self {
        Refs(AtomicU32::new(2))
    }

    /// Counts one more owner. Called by an owner.
    #[inline]
    pub(crate) fn retain(&self) {
        // Relaxed: a new count comes from one that exists; nothing is published. The process ends before the count
        // wraps: two thousand million handles to one task are leaked ones.
        if self.0.fetch_add(1, Ordering::Relaxed) > u32::MAX / 2 {
            std::process::abort();
        }
    }

    /// Counts one owner less. Returns true for the last, which is alone with the task from then on.
    #[inline]
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        // Acquire suffices: an only owner has no contenders. Pairs with the Release of each earlier
        // `release`.
        if self.0.load(Ordering::Acquire) == 1 {
            return true;
        }
        // Release: what this owner did to the task comes before its end.
        if self.0.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        // Acquire: pairs with the Release above of every other owner.
        fence(Ordering::Acquire);
        true
    }
}
