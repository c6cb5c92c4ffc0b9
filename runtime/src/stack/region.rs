//! A region: one mapping, cut into stacks of one size.
//!
//! ```text
//! low addresses                                                        high addresses
//! | guard | stack 0          colour | guard | stack 1          colour | guard | ...
//! ^ limit                 ^ base     ^ limit of the next
//! ```

use std::io;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::stack::guard;
use crate::stack::guard::{Guards, Kind, Made};
use crate::stack::sys::{self, Unused};

/// Owns one mapping of `stacks` times `stride` bytes. Unmapped when dropped.
pub(super) struct Region {
    start: usize,
    stacks: usize,
    stride: usize,
    guard: usize,
    kind: Kind,
    /// Guards here that are made of page protection.
    protected: AtomicUsize,
    /// Stacks that were dropped instead of given back.
    lost: AtomicUsize,
    /// Stacks found in the exchange at its end. The region is unmapped only when this is all of
    /// them.
    home: AtomicUsize,
}

impl Region {
    /// Maps a region of `stacks` stacks, or of fewer if the address space does not suffice.
    pub(super) fn map(stride: usize, guard: usize, stacks: usize, guards: Guards) -> io::Result<Self> {
        let mut stacks = stacks.max(1);
        let start = loop {
            match sys::map(stacks * stride) {
                Ok(start) => break start,
                Err(_) if stacks > 1 => stacks /= 2,
                Err(error) => return Err(no_address_space(stride, error)),
            }
        };
        sys::forbid_huge_pages(start, stacks * stride);
        let zero = || AtomicUsize::new(0);
        let (protected, lost, home) = (zero(), zero(), zero());
        let mut region = Self { start, stacks, stride, guard, kind: Kind::Protect, protected, lost, home };
        // SAFETY: the low end of the first stack of a mapping made just now.
        region.kind = guard::decide(guards, &unsafe { Unused::new(start, guard) })?;
        Ok(region)
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

    #[cfg(test)]
    /// Returns how many of its stacks were dropped instead of given back.
    pub(super) fn lost(&self) -> usize {
        // Relaxed: a statistic.
        self.lost.load(Ordering::Relaxed)
    }

    pub(super) fn count_lost(&self) {
        // Relaxed: a statistic. That the region stays mapped follows from the stack's absence from the exchange.
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts stacks, or a range not cut yet, as returned.
    fn count_home(&self, stacks: usize) {
        // Relaxed: only the dropper of the class counts, on one thread.
        self.home.fetch_add(stacks, Ordering::Relaxed);
    }

    fn all_home(&self) -> bool {
        // Relaxed: as above.
        self.home.load(Ordering::Relaxed) == self.stacks
    }

    pub(super) fn limit_of(&self, index: usize) -> usize {
        debug_assert!(index < self.stacks);
        self.start + index * self.stride
    }

    /// Returns the lowest address of the stack that starts at `base`.
    pub(super) fn limit_below(&self, base: usize) -> usize {
        // A base is the end of its stack or somewhat below, never its start.
        self.limit_of((base - 1 - self.start) / self.stride)
    }

    pub(super) fn install_guard(&self, index: usize) -> io::Result<()> {
        // SAFETY: whole pages at the low end of a stack that is not handed out yet, in a mapping that lives as long as `self`.
        let pages = unsafe { Unused::new(self.limit_of(index), self.guard) };
        if guard::install(self.kind, &pages)? == Made::Protection {
            // Relaxed: read when the region is dropped, which the exchange's mutex and the last Arc order after this.
            self.protected.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Region {
    /// Gives the memory of whole pages back. Called by the stack that they belong to.
    pub(super) fn discard(&self, pages: Range<usize>) {
        // SAFETY: pages of the region's one mapping, which lives as long as `self`. Only their
        // stack calls this, by a unique reference in the module's hands, so no code runs on them.
        unsafe { Unused::new(pages.start, pages.len()) }.discard();
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is exactly what `map` returned. A region is dropped where its making
        // failed, or by `Regions::end`, which found every stack returned.
        unsafe { sys::unmap(self.start, self.stacks * self.stride) };
        guard::retire(*self.protected.get_mut());
    }
}

/// Refers to a region, which its class owns.
///
/// Invariant: the region lives until [`Regions::end`] unmaps it, after which no stack, no range and no class
/// refers to it, or for ever.
#[derive(Clone, Copy)]
pub(super) struct RegionRef(NonNull<Region>);

// SAFETY: a `Region` is plain numbers and atomics; a shared reference to it may be used on any thread.
unsafe impl Send for RegionRef {}
// SAFETY: as above.
unsafe impl Sync for RegionRef {}

/// Regions that outlive their class.
///
/// Only leak checkers read this; it shows them that the headers are meant to stay.
static LEAKED: Mutex<Vec<RegionRef>> = Mutex::new(Vec::new());

/// Counts returned stacks of a region, cut or not: no handle and no range stands for them any more.
pub(super) struct Home {
    pub(super) region: RegionRef,
    pub(super) stacks: usize,
}

/// Owns the regions of one class.
#[derive(Default)]
pub(super) struct Regions(Vec<RegionRef>);

impl Regions {
    /// Adds a region, to which stacks may refer from now on.
    pub(super) fn add(&mut self, region: Region) -> RegionRef {
        let region = RegionRef(NonNull::from(Box::leak(Box::new(region))));
        self.0.push(region);
        region
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &RegionRef> {
        self.0.iter()
    }

    /// Unmaps each region whose stacks were all returned. Leaks the others.
    pub(super) fn end(self, home: impl Iterator<Item = Home>) {
        home.for_each(|home| home.region.count_home(home.stacks));
        for region in self.0 {
            if region.all_home() {
                // SAFETY: the pointer came from `Box::leak`, and `self` was its only owner. All stacks were counted and destroyed,
                // so none refers to the region.
                drop(unsafe { Box::from_raw(region.0.as_ptr()) });
            } else {
                LEAKED.lock().unwrap_or_else(PoisonError::into_inner).push(region);
            }
        }
    }
}

impl Deref for RegionRef {
    type Target = Region;

    fn deref(&self) -> &Region {
        // SAFETY: alive by the invariant of the type; only shared references are ever made of it before its end.
        unsafe { self.0.as_ref() }
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
