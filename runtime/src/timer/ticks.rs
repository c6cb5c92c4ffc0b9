//! The wheel's clock: instants as ticks, rounded so that nothing is ever early.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

/// The binary logarithm of a tick in nanoseconds.
pub(super) const TICK_BITS: u32 = 14;

/// The tick that `floor` never answers, after all others.
pub(super) const MOST: u64 = (u64::MAX >> TICK_BITS) + 1;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Counts ticks from the moment it was made.
///
/// Instants more than a `u64` of nanoseconds (584 years) ahead are clamped to [`MOST`].
#[derive(Debug)]
pub(crate) struct Ticks {
    origin: Instant,
}

impl Ticks {
    pub(crate) fn since(origin: Instant) -> Ticks {
        Ticks { origin }
    }

    /// Returns the first tick that begins at `deadline` or after it.
    #[inline]
    pub(super) fn ceil(&self, deadline: Instant) -> u64 {
        let nanos = self.nanos(deadline);
        let rest = nanos & ((1 << TICK_BITS) - 1);
        (nanos >> TICK_BITS) + u64::from(rest != 0)
    }

    /// Returns the last tick that began at `now` or before it.
    #[inline]
    pub(super) fn floor(&self, now: Instant) -> u64 {
        self.nanos(now) >> TICK_BITS
    }

    /// Returns the moment at which `tick` begins; `None` where that is beyond the clock, and so
    /// never comes.
    #[inline]
    pub(crate) fn start_of(&self, tick: u64) -> Option<Instant> {
        let nanos = tick.checked_mul(1 << TICK_BITS)?;
        self.origin.checked_add(Duration::from_nanos(nanos))
    }

    #[inline]
    fn nanos(&self, at: Instant) -> u64 {
        let ahead = at.saturating_duration_since(self.origin);
        let whole = ahead.as_secs().saturating_mul(NANOS_PER_SEC);
        whole.saturating_add(u64::from(ahead.subsec_nanos()))
    }
}
