//! The switch by corosensei, for all other targets and for AddressSanitizer.

use std::cell::{Cell, UnsafeCell};
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::ptr;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use corosensei::{Coroutine as Inner, CoroutineResult, Yielder};

use crate::base::unwinder::SavedContext;
use crate::coroutine::panic_counter::Ends;
use crate::coroutine::stop::{Body, Resumed};
use crate::stack::handle::Stack;

/// The handle by which a running body suspends itself; lies at the top of its stack.
type Suspender = Yielder<(), Resumed>;

/// A coroutine that can be bound to a stack. Stays in place while it is bound.
///
/// The worker uses the cell and resumes one coroutine at a time; the body reaches its own stack only.
pub(crate) struct Coroutine {
    inner: UnsafeCell<Option<Inner<(), Resumed, (), Ends>>>,
    suspender: Cell<*const Suspender>,
    /// The stack pointer, the program counter and the frame pointer of the call that suspended it; the first is 0 while it
    /// is not suspended.
    saved: [AtomicUsize; 3],
    /// Outlives the code that runs on it.
    stack: Cell<Option<Stack>>,
}

impl Coroutine {
    pub(crate) const fn vacant() -> Self {
        Coroutine {
            inner: UnsafeCell::new(None),
            suspender: Cell::new(ptr::null()),
            saved: [const { AtomicUsize::new(0) }; 3],
            stack: Cell::new(None),
        }
    }

    /// Binds the coroutine to `stack`. The first resume calls `body(argument)`.
    pub(crate) fn bind(&self, stack: Stack, argument: NonNull<()>, body: Body) {
        let place = ptr::from_ref(self);
        let inner = Inner::with_stack(Ends::of(&stack), move |suspender, ()| {
            // SAFETY: a coroutine stays in place until its stack is taken, by the contract of `resume`.
            unsafe { (*place).suspender.set(suspender) };
            body(argument)
        });
        // SAFETY: no thread resumes it before it is bound.
        let before = unsafe { (*self.inner.get()).replace(inner) };
        assert!(before.is_none(), "the coroutine is bound already");
        self.stack.set(Some(stack));
    }

    /// Returns the stack, from `bind` until `take_stack`.
    ///
    /// # Safety
    /// Neither is called while the reference is used.
    pub(crate) unsafe fn stack(&self) -> Option<&Stack> {
        // SAFETY: nothing else writes to the cell.
        unsafe { (*self.stack.as_ptr()).as_ref() }
    }

    /// Runs the body until it suspends or ends.
    ///
    /// # Safety
    /// The coroutine is bound, has not ended, and does not run. It stays in place until its stack is taken. One thread at a
    /// time uses it.
    #[inline]
    pub(crate) unsafe fn resume(&self) -> Resumed {
        // Relaxed: a reader that finds the next sleep begun finds this store, by the Release of the wait word. A reader that
        // finds what the task writes from now on finds it too, by the fence.
        self.saved[0].store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        // SAFETY: only the worker that has the coroutine resumes it, and never while the body runs.
        let inner = unsafe { (*self.inner.get()).as_mut() };
        match inner.expect("the coroutine is bound").resume(()) {
            CoroutineResult::Yield(result) => result,
            CoroutineResult::Return(()) => Resumed::FINISHED,
        }
    }

    /// Leaves the stack until the next resume. The resume that runs this code returns `result`.
    ///
    /// # Safety
    /// The caller runs on this stack.
    #[inline]
    pub(crate) unsafe fn suspend(&self, result: Resumed) {
        let [sp, pc, fp] = context();
        // Relaxed: published by the first.
        self.saved[1].store(pc, Ordering::Relaxed);
        self.saved[2].store(fp, Ordering::Relaxed);
        // Release: pairs with the Acquire in `suspended`, which then sees the frames as they are now.
        self.saved[0].store(sp, Ordering::Release);
        // SAFETY: by the contract the body runs, so it has set this pointer, which leads to its own stack.
        unsafe { (*self.suspender.get()).suspend(result) };
    }

    /// Runs `f` on the stack of the worker that resumed this coroutine. `f` does not suspend.
    ///
    /// # Safety
    /// The caller runs on this stack.
    pub(crate) unsafe fn on_worker_stack<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        // SAFETY: as in `suspend`.
        unsafe { &*self.suspender.get() }.on_parent_stack(f)
    }

    /// Does nothing: corosensei keeps the stack pointer to itself.
    #[inline]
    pub(crate) fn prefetch(&self) {}

    /// Returns true if the body has ended.
    ///
    /// # Safety
    /// The body does not run, and is not resumed meanwhile.
    pub(crate) unsafe fn has_ended(&self) -> bool {
        // SAFETY: by the contract nothing else uses the coroutine.
        unsafe { (*self.inner.get()).as_ref() }.is_some_and(Inner::done)
    }

    /// Returns the saved stack pointer, or `None` while the coroutine is not suspended. On any thread.
    pub(crate) fn suspended(&self) -> Option<NonZeroUsize> {
        // Acquire: pairs with the Release in `suspend`.
        NonZeroUsize::new(self.saved[0].load(Ordering::Acquire))
    }

    /// The offset of the saved stack pointer; nothing that readers of memory need is pushed.
    pub(crate) const SAVED: usize = offset_of!(Coroutine, saved);
    pub(crate) const PUSHED: usize = 0;

    /// The offset of the base of its stack, for readers of memory.
    pub(crate) const BASE: usize = offset_of!(Coroutine, stack) + Stack::BASE;

    /// Returns where the coroutine goes on, if it is suspended and that is known. On any thread.
    pub(crate) fn context(&self, _read: impl FnMut(usize) -> Option<usize>) -> Option<SavedContext> {
        let sp = self.suspended()?.get();
        // Relaxed: published by the first.
        let [pc, fp] = [1, 2].map(|index| self.saved[index].load(Ordering::Relaxed));
        (pc > 0).then_some(SavedContext { pc, sp, fp })
    }

    /// Reads where the coroutine at that address goes on.
    ///
    /// `read` returns the word at an address, and fails where there is none.
    pub(crate) fn context_at(
        coroutine: usize,
        mut read: impl FnMut(usize) -> Option<usize>,
    ) -> Option<SavedContext> {
        let saved = coroutine + Self::SAVED;
        let [sp, pc, fp] = [0, 1, 2].map(|index| read(saved + index * size_of::<usize>()));
        Some(SavedContext { pc: pc.filter(|pc| *pc > 0)?, sp: sp?, fp: fp? })
    }

    /// Takes the stack of a finished coroutine.
    ///
    /// # Safety
    /// The coroutine has finished.
    pub(crate) unsafe fn take_stack(&self) -> Stack {
        // SAFETY: by the contract no code runs on the stack, or will.
        let inner = unsafe { (*self.inner.get()).take() };
        assert!(inner.is_some_and(|inner| inner.done()), "a task is still on this stack");
        self.stack.take().expect("a finished coroutine has its stack")
    }
}

/// Returns the stack pointer, the program counter and the frame pointer of the function that this is inlined into.
///
/// On other targets the stack pointer is 1, which stands for an unknown one, and there is no program counter.
#[inline(always)]
fn context() -> [usize; 3] {
    let (sp, pc, fp): (usize, usize, usize);
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    // SAFETY: reads registers only.
    unsafe {
        std::arch::asm!(
            "mov {sp}, rsp",
            "lea {pc}, [rip]",
            "mov {fp}, rbp",
            sp = out(reg) sp,
            pc = out(reg) pc,
            fp = out(reg) fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "mov {sp}, sp",
            "adr {pc}, .",
            "mov {fp}, x29",
            sp = out(reg) sp,
            pc = out(reg) pc,
            fp = out(reg) fp,
            options(nomem, nostack, preserves_flags),
        );
    }
    #[cfg(not(any(all(target_arch = "x86_64", target_pointer_width = "64"), target_arch = "aarch64")))]
    {
        (sp, pc, fp) = (1, 0, 0);
    }
    [sp, pc, fp]
}
