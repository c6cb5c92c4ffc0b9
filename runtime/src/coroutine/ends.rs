//! Adapter that passes a stack of this crate to corosensei.

use std::num::NonZeroUsize;

use crate::stack::handle::Stack;

/// The bounds of a stack. The stack itself stays with its owner for as long as code runs on it.
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
