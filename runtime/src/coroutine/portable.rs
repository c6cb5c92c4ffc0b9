//! The switch by corosensei, for where there is none of ours.

use std::cell::UnsafeCell;
use std::num::NonZeroUsize;

use corosensei::{Coroutine as Inner, CoroutineResult, Yielder};

use super::{Body, Resumed, Stop};
use crate::stack::Stack;
use crate::task::TaskRef;

/// What a running task suspends itself with; lives at the top of its stack.
pub(crate) type Suspender = Yielder<(), Stop>;

/// A stack with a task on it.
///
/// The cell is the worker's, which resumes one coroutine at a time; the task reaches its own stack only.
pub(crate) struct Coroutine(UnsafeCell<Inner<(), Stop, (), Bound>>);

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
    pub(crate) fn new(stack: Stack, task: TaskRef, body: Body) -> Self {
        Coroutine(UnsafeCell::new(Inner::with_stack(Bound(stack), move |suspender, ()| {
            body(task, suspender)
        })))
    }

    /// Runs the task until it suspends or ends.
    #[inline]
    pub(crate) fn resume(&self) -> Resumed {
        // SAFETY: only the worker that has the coroutine resumes it, and it does not while the task runs.
        match unsafe { (*self.0.get()).resume(()) } {
            CoroutineResult::Yield(stop) => stop.into(),
            CoroutineResult::Return(()) => Resumed::FINISHED,
        }
    }

    /// Fetches nothing ahead: where the stack stands is corosensei's.
    #[inline]
    pub(crate) fn prefetch(&self) {}

    /// Takes the stack of a finished coroutine.
    pub(crate) fn into_stack(self) -> Stack {
        self.0.into_inner().into_stack().0
    }
}

/// Runs `f` on the stack of the worker that resumed this coroutine.
pub(crate) fn on_worker_stack<R: Send>(suspender: &Suspender, f: impl FnOnce() -> R + Send) -> R {
    suspender.on_parent_stack(f)
}
