//! Counts of the senders and receivers of a channel.
//!
//! ```text
//!           clone, by the owner of one           drop
//!   1 ◀─────────────────────────────────▶ n ──────────────▶ … ──▶ 0: the last one ends its side, once
//!           upgrade, by the owner of a weak one, but not from 0
//! ```
//!
//! The end itself is a change under the channel's lock. Waiters and arrivals find it there.

#![forbid(unsafe_code)]

use super::shared::Shared;
use crate::primitive::{AtomicUsize, Ordering};

/// Channel with the counts of its ends.
pub(super) struct Counted<T> {
    pub(super) shared: Shared<T>,
    pub(super) senders: Ends,
    pub(super) receivers: Ends,
}

impl<T> Counted<T> {
    /// Makes a channel with one end of each side.
    pub(super) fn new(capacity: Option<usize>) -> Self {
        Counted { shared: Shared::new(capacity), senders: Ends::one(), receivers: Ends::one() }
    }
}

/// The number of the ends of one side.
pub(super) struct Ends(AtomicUsize);

impl Ends {
    fn one() -> Self {
        Ends(AtomicUsize::new(1))
    }

    /// Counts another end, for the owner of one.
    pub(super) fn increase(&self) {
        // Relaxed: the caller owns an end, and nothing is published.
        if self.0.fetch_add(1, Ordering::Relaxed) > usize::MAX / 2 {
            // Leaked ends in a loop come here. A count that wraps would close a channel in use.
            std::process::abort();
        }
    }

    /// Counts another end, for the owner of a weak one. Returns false if all are gone, or as many as can be counted.
    #[must_use]
    pub(super) fn increase_if_any(&self) -> bool {
        // Relaxed: nothing is published, and an end that is counted now is seen by the close as those before.
        let increase = |count| (1..=usize::MAX / 2).contains(&count).then(|| count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, increase).is_ok()
    }

    pub(super) fn count(&self) -> usize {
        // Acquire: pairs with the Release in `decrease`. A caller that sees an end gone sees what its owner did before.
        self.0.load(Ordering::Acquire)
    }

    /// Returns true if that was the last one.
    pub(super) fn decrease(&self) -> bool {
        // AcqRel: pairs with itself, so that all uses of the earlier dropped ends come before the
        // close.
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
