//! Stacks that are not cut yet.

#![forbid(unsafe_code)]

use std::io;
use std::num::NonZeroUsize;

use crate::stack::handle::Stack;
use crate::stack::region::{Home, RegionRef};
use crate::stack::size::{COLOUR_STEP, COLOURS};

/// A range of stacks that are not cut yet: they have no guard and were never touched.
///
/// Like a [`Stack`] it must return for the region to be unmapped; forgotten, it leaks the region.
pub(super) struct Fresh {
    pub(super) region: RegionRef,
    pub(super) next: usize,
    pub(super) end: usize,
}

impl Fresh {
    /// All of a region, to be cut.
    pub(super) fn whole(region: RegionRef) -> Fresh {
        Fresh { region, next: 0, end: region.stacks() }
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.next
    }

    /// Splits off the first `most` stacks, or all.
    pub(super) fn split(&mut self, most: usize) -> Fresh {
        let (next, end) = (self.next, self.end.min(self.next + most));
        self.next = end;
        Fresh { region: self.region, next, end }
    }

    /// Cuts the next stack and installs its guard; `None` at the end of the range. After an error it may be tried again.
    pub(super) fn cut(&mut self) -> Option<io::Result<Stack>> {
        if self.next == self.end {
            return None;
        }
        Some(self.region.install_guard(self.next).map(|()| {
            let index = self.next;
            self.next += 1;
            stack_at(self.region, index)
        }))
    }

    /// Ends the range.
    pub(super) fn go_home(self) -> Home {
        Home { region: self.region, stacks: self.len() }
    }
}

fn stack_at(region: RegionRef, index: usize) -> Stack {
    let base = region.limit_of(index) + region.stride() - (index % COLOURS) * COLOUR_STEP;
    Stack::new(NonZeroUsize::new(base).expect("a mapping is never at address zero"), region)
}
