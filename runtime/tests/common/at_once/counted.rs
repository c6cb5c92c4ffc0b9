//! An allocator that knows how many of the blocks are in use which the threads of a test have asked for.
//!
//! Each block has a mark before it that says whether it counts, so that any thread may give it back. Threads that have not
//! been [told to](count_here) do not count: the test harness has some of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicIsize, Ordering};

struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

static IN_USE: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

/// The blocks that this thread asks for count from now on.
pub(crate) fn count_here() {
    COUNTS.set(true);
}

/// Counts the blocks that this thread asks for in `f`.
pub(crate) fn counting<R>(f: impl FnOnce() -> R) -> R {
    COUNTS.set(true);
    let result = f();
    COUNTS.set(false);
    result
}

/// How many blocks are in use.
pub(crate) fn blocks() -> isize {
    IN_USE.load(Ordering::SeqCst)
}

/// The block with its mark: as many bytes are put before it as its alignment has, the last of which is the mark.
fn marked(layout: Layout) -> Option<Layout> {
    Layout::from_size_align(layout.size().checked_add(layout.align())?, layout.align()).ok()
}

// SAFETY: all of it is the system's allocator, asked for blocks that are larger by their alignment, which keeps them aligned;
// the caller gets what lies behind that. The flag is a `const` thread-local without a destructor.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(whole) = marked(layout) else { return ptr::null_mut() };
        // SAFETY: not of no size, since an alignment is not zero.
        let block = unsafe { System.alloc(whole) };
        if block.is_null() {
            return block;
        }
        let counts = COUNTS.get();
        IN_USE.fetch_add(isize::from(counts), Ordering::Relaxed);
        // SAFETY: the whole block begins one alignment before what the caller gets, and that is a byte at least.
        unsafe {
            let own = block.add(layout.align());
            own.sub(1).write(u8::from(counts));
            own
        }
    }

    unsafe fn dealloc(&self, own: *mut u8, layout: Layout) {
        // SAFETY: written by `alloc`.
        let counts = unsafe { own.sub(1).read() };
        IN_USE.fetch_sub(isize::from(counts != 0), Ordering::Relaxed);
        let whole = marked(layout).expect("as when it was allocated");
        // SAFETY: what `alloc` got from the system, with the layout that it asked for.
        unsafe { System.dealloc(own.sub(layout.align()), whole) };
    }
}
