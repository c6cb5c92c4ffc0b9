//! A stack of ours as corosensei wants it.

use std::num::NonZeroUsize;

use crate::stack::handle::Stack;

/// Where a stack begins and ends. The stack itself stays with who has it, for as long as something runs on it.
pub(super) struct Ends {
    base: NonZeroUsize,
    limit: NonZeroUsize,
}

impl Ends {
    pub(super) fn of(stack: &Stack) -> Self {
        let limit = NonZeroUsize::new(stack.limit()).expect("a mapping is never at address zero");
        Ends { base: stack.base(), limit }
    }
}

// SAFETY: a `Stack` is at least corosensei's minimum (checked where sizes are set), its low end is a guard that faults,
// and `limit` lies below that guard.
unsafe impl corosensei::stack::Stack for Ends {
    #[inline]
    fn base(&self) -> NonZeroUsize {
        self.base
    }

    #[inline]
    fn limit(&self) -> NonZeroUsize {
        self.limit
    }
}
