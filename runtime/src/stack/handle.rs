//! The handle of one stack.

#![forbid(unsafe_code)]

use std::fmt;
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use crate::stack::region::Region;
use crate::stack::sys;

/// How far below its guard a wild access still counts as an overflow: a big frame that was not probed.
const NEAR: usize = 64 * 1024;

/// The cache lines below its base that a task touches before its closure's own.
const FIRST_LINES: usize = 3;

/// The right to run on one piece of memory, with a guard at its low end.
///
/// Give it back to a [`Pool`](crate::stack::pool::Pool) of the runtime that it came from. Forgotten, it keeps its region mapped
/// for ever.
#[must_use = "a stack that is not given back is not used again"]
pub(crate) struct Stack {
    /// Where the coroutine starts: the end of the memory, less the colour.
    base: NonZeroUsize,
    region: Arc<Region>,
}

// A reader of memory finds the base also where the type allows for there being no stack.
const _: () = assert!(size_of::<Option<Stack>>() == size_of::<Stack>());

impl Stack {
    /// The offset of the highest address, for readers of memory.
    pub(crate) const BASE: usize = offset_of!(Stack, base);

    pub(super) fn new(base: NonZeroUsize, region: Arc<Region>) -> Self {
        Self { base, region }
    }

    /// Returns the highest address: a multiple of a cache line, at a different place of the last KiB from stack to stack.
    #[inline]
    pub(crate) fn base(&self) -> NonZeroUsize {
        self.base
    }

    /// Fetches into the cache what the first frames of a task will touch.
    #[inline]
    pub(crate) fn prefetch(&self) {
        (1..=FIRST_LINES).for_each(|line| sys::prefetch(self.base.get() - line * sys::LINE));
    }

    /// Returns the lowest address, guard included; a multiple of the page size.
    pub(crate) fn limit(&self) -> usize {
        self.region.limit_below(self.base.get())
    }

    /// Returns the size of its class in bytes of address space, guard and colour included.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.region.stride()
    }

    #[cfg(test)]
    /// Returns how many bytes can be used: between the guard and the base.
    pub(crate) fn usable(&self) -> usize {
        self.base.get() - self.guard_range().end
    }

    /// Returns the addresses whose touch is an overflow.
    pub(crate) fn guard_range(&self) -> Range<usize> {
        let start = self.limit();
        start..start + self.region.guard()
    }

    /// Returns true if a fault at this address is an overflow of this stack: in its guard, or
    /// shortly below.
    ///
    /// Async-signal-safe.
    pub(crate) fn is_overflow(&self, address: usize) -> bool {
        let guard = self.guard_range();
        (guard.start.saturating_sub(NEAR)..guard.end).contains(&address)
    }

    /// Gives back all memory.
    pub(super) fn discard(&mut self) {
        let end = self.limit() + self.size();
        self.region.discard(self.guard_range().end..end);
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stack({:#x}..{:#x})", self.limit(), self.base)
    }
}
