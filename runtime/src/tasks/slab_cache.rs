//! The memory of ended tasks, kept on each worker for new ones.
//!
//! An allocator's own cache holds a few blocks per size. A server that spawns and ends tasks by the
//! thousand overflows it, into the arena's locks and, where the arena is trimmed, into page faults.
//! Blocks come from the global allocator and go back to it. So a task may be made on one thread and
//! end on another.

use std::alloc::{self, Layout};
use std::cell::RefCell;
use std::ptr::NonNull;

use crate::tasks::header::Header;

/// The step of block sizes: a block has room for a header and the rest of the task, rounded up to
/// this. Allocators round as much anyhow; a larger step would waste memory in each sleeping task.
const STEP: usize = 16;
const SIZES: usize = 22;
const ALIGN: usize = 16;

/// The most blocks of one size that a worker keeps.
const MOST: usize = 10_240;

/// Holds the unused blocks of one worker.
pub(crate) struct SlabCache {
    blocks: [Vec<NonNull<u8>>; SIZES],
}

impl SlabCache {
    pub(crate) fn new() -> Self {
        SlabCache { blocks: [const { Vec::new() }; SIZES] }
    }

    /// Gives half of the blocks back to the allocator. Called by an idle worker now and then.
    ///
    /// Not inlined: it would take registers from the worker's loop.
    #[inline(never)]
    pub(crate) fn trim(&mut self) {
        for (size, blocks) in self.blocks.iter_mut().enumerate() {
            for block in blocks.drain(blocks.len() / 2..) {
                // SAFETY: it came from `take` with this layout, and is unused.
                unsafe { alloc::dealloc(block.as_ptr(), layout_of(size)) };
            }
            blocks.shrink_to(2 * blocks.len());
        }
    }
}

impl Drop for SlabCache {
    fn drop(&mut self) {
        while self.blocks.iter().any(|blocks| !blocks.is_empty()) {
            self.trim();
        }
    }
}

/// Returns the size that serves a layout, if one does.
const fn size_of_layout(layout: Layout) -> Option<usize> {
    let size = (layout.size() - size_of::<Header>()).div_ceil(STEP);
    if layout.align() <= ALIGN && size < SIZES { Some(size) } else { None }
}

fn layout_of(size: usize) -> Layout {
    Layout::from_size_align(size_of::<Header>() + size * STEP, ALIGN).expect("a small layout")
}

/// Takes memory for `layout`, from the worker's cache where there is one.
#[inline]
pub(crate) fn take(slabs: Option<&RefCell<SlabCache>>, layout: Layout) -> NonNull<u8> {
    let Some(size) = size_of_layout(layout) else { return allocate(layout) };
    let kept = slabs.map(|slabs| slabs.borrow_mut().blocks[size].pop());
    kept.flatten().unwrap_or_else(|| allocate(layout_of(size)))
}

/// Gives back memory that `take` returned for `layout`.
///
/// # Safety
/// `take` returned the block for this layout, and the block is unused.
#[inline]
pub(crate) unsafe fn give(slabs: Option<&RefCell<SlabCache>>, block: NonNull<u8>, layout: Layout) {
    let Some(size) = size_of_layout(layout) else {
        // SAFETY: by the contract; `take` allocated it with this layout.
        return unsafe { alloc::dealloc(block.as_ptr(), layout) };
    };
    let kept = slabs.is_some_and(|slabs| {
        let blocks = &mut slabs.borrow_mut().blocks[size];
        let room = blocks.len() < MOST;
        if room {
            blocks.push(block);
        }
        room
    });
    if !kept {
        // SAFETY: as above, with the rounded layout.
        unsafe { alloc::dealloc(block.as_ptr(), layout_of(size)) };
    }
}

#[cold]
fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: no layout of a task has the size zero.
    let block = unsafe { alloc::alloc(layout) };
    NonNull::new(block).unwrap_or_else(|| alloc::handle_alloc_error(layout))
}
