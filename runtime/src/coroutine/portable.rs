//! The switch by corosensei, for where there is none of ours.

use std::cell::{Cell, UnsafeCell};
use std::ptr;

use corosensei::{Coroutine as Inner, CoroutineResult, Yielder};

use crate::coroutine::ends::Ends;
use crate::coroutine::{Body, Resumed, Stop};
use crate::stack::handle::Stack;
use crate::tasks::header::TaskRef;

/// What a running task suspends itself with; lives at the top of its stack.
type Suspender = Yielder<(), Stop>;

/// A place for a task on a stack. Stays where it is while there is one.
///
/// The cell is the worker's, which resumes one coroutine at a time; the task reaches its own stack only.
pub(crate) struct Coroutine {
    inner: UnsafeCell<Option<Inner<(), Stop, (), Ends>>>,
    suspender: Cell<*const Suspender>,
    /// Outlives what runs on it.
    stack: Cell<Option<Stack>>,
}

impl Coroutine {
    pub(crate) const fn vacant() -> Self {
        Coroutine { inner: UnsafeCell::new(None), suspender: Cell::new(ptr::null()), stack: Cell::new(None) }
    }

    /// Binds `task` to `stack`; `body` runs at the first resume.
    pub(crate) fn bind(&self, stack: Stack, task: TaskRef, body: Body) {
        let place = ptr::from_ref(self);
        let inner = Inner::with_stack(Ends::of(&stack), move |suspender, ()| {
            // SAFETY: a coroutine stays in place until its stack is taken, by the contract of `resume`.
            unsafe { (*place).suspender.set(suspender) };
            body(task)
        });
        // SAFETY: nobody resumes it before it is bound.
        let before = unsafe { (*self.inner.get()).replace(inner) };
        assert!(before.is_none(), "a task is on this stack");
        self.stack.set(Some(stack));
    }

    /// The stack, from `bind` until it is taken.
    ///
    /// # Safety
    /// Neither happens while the reference is used.
    pub(crate) unsafe fn stack(&self) -> Option<&Stack> {
        // SAFETY: nothing else writes to the cell.
        unsafe { (*self.stack.as_ptr()).as_ref() }
    }

    /// Runs the task until it suspends or ends.
    ///
    /// # Safety
    /// A task was bound, has not ended, and does not run. The coroutine stays in place until its stack is taken, and all of
    /// this is done by one thread at a time.
    #[inline]
    pub(crate) unsafe fn resume(&self) -> Resumed {
        // SAFETY: only the worker that has the coroutine resumes it, and it does not while the task runs.
        let inner = unsafe { (*self.inner.get()).as_mut() };
        match inner.expect("a task was bound").resume(()) {
            CoroutineResult::Yield(stop) => stop.into(),
            CoroutineResult::Return(()) => Resumed::FINISHED,
        }
    }

    /// Leaves the stack, until the task is resumed.
    ///
    /// # Safety
    /// The caller runs on this stack.
    #[inline]
    pub(crate) unsafe fn suspend(&self, stop: Stop) {
        // SAFETY: by the contract the task runs, so it has set this, and it lies on its stack.
        unsafe { (*self.suspender.get()).suspend(stop) };
    }

    /// Runs `f` on the stack of the worker that resumed the task. `f` does not suspend.
    ///
    /// # Safety
    /// The caller runs on this stack.
    pub(crate) unsafe fn on_worker_stack<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        // SAFETY: as in `suspend`.
        unsafe { &*self.suspender.get() }.on_parent_stack(f)
    }

    /// Fetches nothing ahead: where the stack stands is corosensei's.
    #[inline]
    pub(crate) fn prefetch(&self) {}

    /// Takes the stack of a finished coroutine.
    ///
    /// # Safety
    /// It has finished.
    pub(crate) unsafe fn take_stack(&self) -> Stack {
        // SAFETY: by the contract nobody is on the stack, or resumes it.
        let inner = unsafe { (*self.inner.get()).take() };
        assert!(inner.is_some_and(|inner| inner.done()), "a task is still on this stack");
        self.stack.take().expect("a finished coroutine has its stack")
    }
}
