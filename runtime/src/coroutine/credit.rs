//! A coroutine that holds a panic in the middle; `panics.rs` tells what for.

use corosensei::{Coroutine, Yielder};

/// A coroutine whose panic is under way (raised) or caught (settled).
pub(crate) struct Credit(Coroutine<(), (), ()>);

// SAFETY: all that lives on its stack is the closure below, which holds nothing of any thread. std keeps its panic count
// per thread and nothing else of a panic; that the count changes where `flip` is called is the purpose.
unsafe impl Send for Credit {}

/// Enough for std's unwinder and its personality routine, also in a build without optimization.
const CREDIT_STACK: usize = 128 * 1024;

/// Suspends its coroutine when dropped, that is, while that unwinds.
struct SuspendInDrop<'a>(&'a Yielder<(), ()>);

impl Drop for SuspendInDrop<'_> {
    fn drop(&mut self) {
        self.0.suspend(());
    }
}

impl Credit {
    /// Makes one that is settled.
    pub(crate) fn new() -> Self {
        let stack =
            corosensei::stack::DefaultStack::new(CREDIT_STACK).expect("address space for a small stack");
        Credit(Coroutine::with_stack(stack, |suspender: &Yielder<(), ()>, ()| {
            loop {
                let raised = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let _held = SuspendInDrop(suspender);
                    std::panic::resume_unwind(Box::new(()));
                }));
                drop(raised);
                suspender.suspend(());
            }
        }))
    }

    /// Raises a settled credit or settles a raised one, on the calling thread's count.
    pub(crate) fn flip(&mut self) {
        self.0.resume(());
    }
}
