//! A region: one mapping, cut into stacks of one size.
//!
//! ```text
//! low addresses                                                        high addresses
//! | guard | stack 0          colour | guard | stack 1          colour | guard | ...
//! ^ limit                 ^ base     ^ limit of the next
//! ```

#![forbid(unsafe_code)]

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::stack::guard;
use crate::stack::guard::{Made, StackGuards};
use crate::stack::sys::Mapping;

/// One mapping and its division. Lives as long as one of its stacks, or a range of them that is not cut.
#[derive(Debug)]
pub(super) struct Region {
    mapping: Mapping,
    stacks: usize,
    /// The distance of two stacks, and the size of each.
    stride: usize,
    guard: usize,
    guards: StackGuards,
    /// How many guards are protections: they count against the limit of mappings.
    protected: AtomicUsize,
}

impl Region {
    /// Maps a region of `stacks` stacks, or of fewer if there is no room for so many.
    ///
    /// # Errors
    /// If not even one fits.
    pub(super) fn map(
        stride: usize,
        guard: usize,
        stacks: usize,
        guards: StackGuards,
    ) -> io::Result<Arc<Self>> {
        let mut stacks = stacks.max(1);
        let mapping = loop {
            match Mapping::new(stacks * stride) {
                Ok(mapping) => break mapping,
                Err(_) if stacks > 1 => stacks /= 2,
                Err(error) => return Err(no_address_space(stride, error)),
            }
        };
        Ok(Arc::new(Self { mapping, stacks, stride, guard, guards, protected: AtomicUsize::new(0) }))
    }

    pub(super) fn stacks(&self) -> usize {
        self.stacks
    }

    /// Returns the size of each of its stacks.
    #[inline]
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    pub(super) fn guard(&self) -> usize {
        self.guard
    }

    pub(super) fn limit_of(&self, index: usize) -> usize {
        debug_assert!(index < self.stacks);
        self.mapping.start() + index * self.stride
    }

    /// Returns the lowest address of the stack that starts at `base`.
    pub(super) fn limit_below(&self, base: usize) -> usize {
        // A base is the end of its stack or somewhat below, never its start.
        self.limit_of((base - 1 - self.mapping.start()) / self.stride)
    }

    /// Makes the guard of a stack that is not handed out yet.
    pub(super) fn install_guard(&self, index: usize) -> io::Result<()> {
        let start = self.limit_of(index);
        if guard::install(self.guards, &self.mapping, start..start + self.guard)? == Made::Protection {
            // Relaxed: read when the region is dropped, which the last Arc orders after this.
            self.protected.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives the memory of pages of a stack back. Called by the holder of the stack.
    pub(super) fn discard(&self, pages: Range<usize>) {
        self.mapping.discard(pages);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        guard::retire(*self.protected.get_mut());
    }
}

fn no_address_space(stride: usize, error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::ENOMEM) {
        return error;
    }
    let text = format!(
        "no address space for another stack of {stride} bytes; \
         see RLIMIT_AS (ulimit -v) and the sysctls vm.max_map_count and vm.overcommit_memory"
    );
    io::Error::new(io::ErrorKind::OutOfMemory, text)
}
