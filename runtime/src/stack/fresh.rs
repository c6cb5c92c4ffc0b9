//! Stacks that are not cut yet.

#![forbid(unsafe_code)]

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::stack::handle::Stack;
use crate::stack::region::Region;
use crate::stack::size::{COLOUR_STEP, COLOURS};

/// A range of stacks that are not cut yet: they have no guard and were never touched.
///
/// Like a [`Stack`] it keeps the region mapped.
pub(super) struct Fresh {
    region: Arc<Region>,
    next: usize,
    end: usize,
}

impl Fresh {
    /// Takes all of a region, to be cut.
    pub(super) fn whole(region: Arc<Region>) -> Fresh {
        Fresh { next: 0, end: region.stacks(), region }
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.next
    }

    /// Splits off the first `most` stacks, or all.
    pub(super) fn split(&mut self, most: usize) -> Fresh {
        let (next, end) = (self.next, self.end.min(self.next + most));
        self.next = end;
        Fresh { region: Arc::clone(&self.region), next, end }
    }

    /// Cuts the next stack and installs its guard; `None` at the end of the range. After an error it may be tried again.
    pub(super) fn cut(&mut self) -> Option<io::Result<Stack>> {
        if self.next == self.end {
            return None;
        }
        let index = self.next;
        Some(self.region.install_guard(index).map(|()| {
            self.next += 1;
            let base = self.region.limit_of(index) + self.region.stride() - (index % COLOURS) * COLOUR_STEP;
            let base = NonZeroUsize::new(base).expect("a mapping is never at address zero");
            Stack::new(base, Arc::clone(&self.region))
        }))
    }
}
