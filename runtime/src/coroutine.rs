//! The only file that names corosensei: a coroutine runs one task on one stack.
//!
//! A [`Coroutine`] is resumed by the worker that the task is on, and comes back when the task suspends or ends. The
//! panic of a task never reaches here: the task's own root catches it.

use std::num::NonZeroUsize;

use corosensei::{Coroutine as Inner, CoroutineResult, Yielder};

use crate::stack::Stack;
use crate::task::TaskRef;

/// Why a task left its stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// To let others run; it is still ready.
    Yielded,
    /// To sleep: its wait word says when it is ready again.
    Asleep,
}

/// What came of a resume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resumed {
    Stopped(Stop),
    Finished,
}

/// What a running task suspends itself with; lives at the top of its stack.
pub(crate) type Suspender = Yielder<(), Stop>;

/// A stack with a task on it.
pub(crate) struct Coroutine(Inner<(), Stop, (), Bound>);

/// A stack as corosensei wants it.
struct Bound(Stack);

// SAFETY: a `Stack` is at least corosensei's minimum (checked where sizes are set), its low end is a guard that faults,
// and `limit` lies below that guard.
unsafe impl corosensei::stack::Stack for Bound {
    #[inline]
    fn base(&self) -> NonZeroUsize {
        self.0.base()
    }

    #[inline]
    fn limit(&self) -> NonZeroUsize {
        self.0.limit()
    }
}

impl Coroutine {
    /// Binds `task` to `stack`; `body` runs at the first resume.
    pub(crate) fn new(stack: Stack, task: TaskRef, body: fn(TaskRef, &Suspender)) -> Self {
        Coroutine(Inner::with_stack(Bound(stack), move |suspender, ()| body(task, suspender)))
    }

    /// Runs the task until it suspends or ends.
    #[inline]
    pub(crate) fn resume(&mut self) -> Resumed {
        match self.0.resume(()) {
            CoroutineResult::Yield(stop) => Resumed::Stopped(stop),
            CoroutineResult::Return(()) => Resumed::Finished,
        }
    }

    /// Takes the stack of a finished coroutine.
    pub(crate) fn into_stack(self) -> Stack {
        self.0.into_stack().0
    }
}

/// Runs `f` on the stack of the worker that resumed this coroutine.
pub(crate) fn on_worker_stack<R: Send>(suspender: &Suspender, f: impl FnOnce() -> R + Send) -> R {
    suspender.on_parent_stack(f)
}

/// A coroutine that holds a panic in the middle; see `panics.rs`.
pub(crate) struct Credit(Inner<(), (), ()>);

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
        Credit(Inner::with_stack(stack, |suspender: &Yielder<(), ()>, ()| {
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
