//! Attempts that become rare while they fail.

#![forbid(unsafe_code)]

use std::cell::Cell;

/// Decides how many chances of an attempt to skip.
///
/// Failures in a row beyond the tolerated ones double the chances that are skipped before the next
/// attempt, up to a limit. A success resets all.
pub(crate) struct Skips {
    tolerated: u32,
    most: u32,
    /// Failures in a row.
    failures: Cell<u32>,
    /// Chances left to skip.
    left: Cell<u32>,
}

impl Skips {
    pub(crate) const fn new(tolerated: u32, most: u32) -> Self {
        Skips { tolerated, most, failures: Cell::new(0), left: Cell::new(0) }
    }

    /// Counts a chance. Returns true if the attempt is to be made.
    pub(crate) fn is_due(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left == 0
    }

    /// Notes whether an attempt helped.
    pub(crate) fn note(&self, helped: bool) {
        let failures = if helped { 0 } else { self.failures.get().saturating_add(1) };
        self.failures.set(failures);
        let doublings = failures.saturating_sub(self.tolerated).min(u32::BITS - 1);
        self.left.set(((1 << doublings) - 1).min(self.most));
    }
}
