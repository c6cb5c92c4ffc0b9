//! How many vouch for a task: its handle, its runtime, the clones of `Task`, the wakes that are kept.
//!
//! ```text
//!             retain: by the owner of one             release
//!   2 ◀──────────────────────────────────▶ n ─────────────────────▶ 1 ─────────────────▶ 0: the last one frees it
//!   handle and runtime                                                 alone: no move, nobody can come between
//! ```

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicUsize, Ordering, fence};

/// The counted owners of one task.
pub(crate) struct Refs(AtomicUsize);

impl Refs {
    /// That of the handle, and that of the runtime.
    pub(crate) const fn two() -> Self {
        Refs(AtomicUsize::new(2))
    }

    /// Counts one more. By the owner of one.
    #[inline]
    pub(crate) fn retain(&self) {
        // Relaxed: a new count comes from one that exists; nothing is published. An overflow would need more handles
        // than fit into memory, unless they are leaked: then the process ends before the count wraps.
        if self.0.fetch_add(1, Ordering::Relaxed) > usize::MAX / 2 {
            std::process::abort();
        }
    }

    /// Counts one less. True for the last, who is alone with the task from then on. By the owner of that one.
    #[inline]
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        // Acquire, alone: the only count there is cannot be contended. Pairs with the Release of the others' ends.
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
