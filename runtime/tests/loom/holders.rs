//! The holders of a worker's block, counted as in an `Arc`. Loom is told of its end, and of each touch.

use loom::cell::UnsafeCell;

use crate::primitive::{AtomicU64, Ordering, fence};

pub(crate) struct Holders {
    count: AtomicU64,
    /// True once the block is freed. Read at each touch.
    freed: UnsafeCell<bool>,
}

// SAFETY: the cell is written by the last holder, which is what the models check.
unsafe impl Sync for Holders {}

impl Holders {
    /// With one holder, the worker.
    pub(crate) fn new() -> Self {
        let holders = Holders { count: AtomicU64::new(1), freed: UnsafeCell::new(false) };
        holders.count.load(Ordering::Relaxed);
        holders
    }

    /// As the clone of an `Arc`.
    pub(crate) fn hold(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// As the drop of an `Arc`.
    pub(crate) fn release(&self) {
        if self.count.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: there is no other holder of the block.
            self.freed.with_mut(|freed| unsafe { *freed = true });
        }
    }

    pub(crate) fn touch(&self) {
        assert!(!self.is_freed(), "touched after it was freed");
    }

    pub(crate) fn is_freed(&self) -> bool {
        // SAFETY: the caller holds the block, or its worker waits for what is sent, so it is not freed meanwhile; or all have let go.
        self.freed.with(|freed| unsafe { *freed })
    }
}
