//! Flags that force the slow switch path: one byte to check; the details are stored elsewhere.

#![forbid(unsafe_code)]

use std::cell::Cell;

/// One thing, or several.
#[derive(Clone, Copy)]
pub(crate) struct SlowPath(u8);

impl SlowPath {
    /// A hook is to be called around each switch.
    pub(crate) const HOOKED: Self = SlowPath(1);
    /// The task runs on a big stack.
    pub(crate) const AWAY: Self = SlowPath(1 << 1);
    /// The code that runs must not suspend.
    pub(crate) const FORBIDDEN: Self = SlowPath(1 << 2);
    /// Panics of the task were under way when it was suspended, and are not in its thread's count now.
    pub(crate) const OWED: Self = SlowPath(1 << 3);
    /// The worker has taken up a recorder in this run, and is to record how it ends.
    pub(crate) const TRACED: Self = SlowPath(1 << 4);

    pub(crate) const fn or(self, other: Self) -> Self {
        SlowPath(self.0 | other.0)
    }
}

/// Of the running task, or of its worker while it does not run.
pub(crate) struct SlowPathFlags(Cell<u8>);

impl SlowPathFlags {
    pub(crate) const fn none() -> Self {
        SlowPathFlags(Cell::new(0))
    }

    /// Returns true if any of these flags is set.
    #[inline(always)]
    pub(crate) fn any(&self, of: SlowPath) -> bool {
        self.0.get() & of.0 != 0
    }

    #[inline]
    pub(crate) fn set(&self, flag: SlowPath, there: bool) {
        let others = self.0.get() & !flag.0;
        self.0.set(if there { others | flag.0 } else { others });
    }
}
