//! The switch on x86-64 with 64-bit pointers and the System V calling convention.
//!
//! ```text
//!  a stack that is not running            a stack that never ran
//!  ┌ rbp                                  ┌ 0, 0            (for the alignment)
//!  │ rbx                                  │ body
//!  │ resume address  ◀── saved pointer    │ argument
//!  └                                      └ `start`         ◀── saved pointer
//! ```
//!
//! A switch pushes the registers that an `asm!` block cannot declare as lost (`rbp`, `rbx`) and the address to resume at. It
//! saves the stack pointer, loads the saved pointer of the target, and jumps to the address that it pops there. All other
//! registers are declared as lost, so that the compiler saves only those in use. The control words of the floating point
//! units are not switched: they belong to the thread, as in any function call.

use std::arch::{asm, naked_asm};
use std::cell::Cell;
use std::marker::PhantomPinned;
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use crate::base::unwinder::SavedContext;
use crate::coroutine::stop::{Body, Resumed};
use crate::stack::handle::Stack;
use crate::stack::sys;

// The registers, the words of a frame and the size of a stack slot are those of this data model.
const _: () =
    assert!(size_of::<*const ()>() == 8 && size_of::<usize>() == 8, "the switch needs 64-bit pointers");
#[cfg(any(windows, target_os = "cygwin"))]
compile_error!("the switch needs the System V calling convention");

/// Saves the stack pointer in `from`, switches to the stack at `to` and passes it `value`.
///
/// Evaluates to the value that the switch back passes. A macro, so that the worker's side can add code before the jump.
///
/// # Safety
/// `to` was saved by this macro, or made by `Coroutine::bind`, and was not switched to since. `from` is valid until the switch
/// back.
macro_rules! switch {
    ($from:expr, $to:expr, $value:expr $(, $before_jump:literal)* $(,)?) => {{
        let back: usize;
        // Registers that are not pushed are declared as lost. Pushed ones are popped on the way back, on the same stack.
        asm!(
            "push rbp",
            "push rbx",
            "lea rcx, [rip + 2f]",
            "push rcx",
            "mov [rdi], rsp",
            "mov rsp, rsi",
            "pop rcx",
            $($before_jump,)*
            "jmp rcx",
            "2:",
            "pop rbx",
            "pop rbp",
            inlateout("rax") $value => back,
            inlateout("rdi") $from => _,
            inlateout("rsi") $to => _,
            out("rcx") _,
            out("r12") _,
            out("r13") _,
            out("r14") _,
            out("r15") _,
            clobber_abi("sysv64"),
        );
        back
    }};
}

/// A coroutine that can be bound to a stack. Stays in place while it is bound.
#[repr(C)]
pub(crate) struct Coroutine {
    ends: Ends,
    stack: Cell<Option<Stack>>,
}

/// The saved stack pointers of both sides.
#[repr(C)]
struct Ends {
    /// The stack pointer of the task while it is off its stack: 0 before it is bound and while it runs, and [`ENDED`] after
    /// its end. Other threads read it.
    task: AtomicUsize,
    /// The stack pointer of the worker while the task runs.
    worker: Cell<usize>,
    _pinned: PhantomPinned,
}

/// Stands for the stack pointer of a task that has ended.
const ENDED: usize = 1;

impl Coroutine {
    pub(crate) const fn vacant() -> Self {
        let ends = Ends { task: AtomicUsize::new(0), worker: Cell::new(0), _pinned: PhantomPinned };
        Coroutine { ends, stack: Cell::new(None) }
    }

    /// Binds the coroutine to `stack`. The first resume calls `body(argument)`.
    pub(crate) fn bind(&self, stack: Stack, argument: NonNull<()>, body: Body) {
        let base = stack.base().get();
        let before = self.stack.replace(Some(stack));
        assert!(before.is_none(), "the coroutine is bound already");
        let frame: [usize; 5] =
            [start as *const () as usize, argument.as_ptr().expose_provenance(), body as usize, 0, 0];
        let top = base - size_of_val(&frame);
        // SAFETY: the caller owns the stack, it has room for five words below its base (a page at the least), and its base
        // is a multiple of 16.
        unsafe { std::ptr::with_exposed_provenance_mut::<[usize; 5]>(top).write(frame) };
        // Relaxed: what makes the task ready publishes it to its worker, and other threads do not go by it before a sleep.
        self.ends.task.store(top, Ordering::Relaxed);
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
    #[inline(always)]
    pub(crate) unsafe fn resume(&self) -> Resumed {
        let ends = &self.ends;
        // Relaxed: by the contract only this thread uses it now.
        let to = ends.task.load(Ordering::Relaxed);
        debug_assert!(to > ENDED, "no body is bound");
        // Relaxed: a reader that finds the next sleep begun finds this store, by the Release of the wait word. A reader that
        // finds what the task writes from now on finds it too, by the fence, which is no instruction here.
        ends.task.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        let own = std::ptr::from_ref(ends).expose_provenance();
        // SAFETY: by the contract the task's pointer was saved by `suspend`, or made by `bind`, and no other thread resumes it.
        // `ends` stays in place.
        let back = unsafe {
            switch!(
                ends.worker.as_ptr(),
                to,
                own,
                // Three branches to the next instruction, by bits of the address to jump to: see the docs of `mod.rs`.
                "mov edx, ecx",
                "shr edx, 4",
                "test cl, 0xff",
                "jp 3f",
                "3:",
                "test dl, 0xff",
                "jp 4f",
                "4:",
                "test cl, 0x55",
                "jp 5f",
                "5:",
            )
        };
        Resumed(back)
    }

    /// Leaves the stack until the next resume. The resume that runs this code returns `result`.
    ///
    /// # Safety
    /// The caller runs on this stack.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, result: Resumed) {
        let ends = &self.ends;
        // SAFETY: by the contract the worker's pointer was saved by the `resume` that runs this code, and no switch went to it
        // since. `ends` stays in place.
        _ = unsafe { switch!(ends.task.as_ptr(), ends.worker.get(), result.0) };
    }

    /// Runs `f` on the stack of the worker that resumed this coroutine. `f` does not suspend.
    ///
    /// # Safety
    /// The caller runs on this stack.
    pub(crate) unsafe fn on_worker_stack<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        /// The red zone: bytes below the stack pointer that a leaf function may use.
        const BELOW: usize = 128;
        let free = (self.ends.worker.get() - BELOW) & !(corosensei::stack::STACK_ALIGNMENT - 1);
        let free = NonZeroUsize::new(free).expect("a running task has a worker");
        corosensei::on_stack(BelowWorker(free), f)
    }

    /// Prefetches the cache line that a resume touches first: the end of the stack with the saved registers.
    ///
    /// Only that one: further lines evict those of other tasks before they are used.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        // Relaxed: a hint.
        sys::prefetch(self.ends.task.load(Ordering::Relaxed));
    }

    /// Returns true if the body has ended.
    ///
    /// # Safety
    /// The body does not run, and is not resumed meanwhile.
    pub(crate) unsafe fn has_ended(&self) -> bool {
        // Relaxed: by the contract only the caller's thread uses it.
        self.ends.task.load(Ordering::Relaxed) == ENDED
    }

    /// Returns the saved stack pointer, or `None` while the coroutine is not suspended. On any thread.
    #[inline]
    pub(crate) fn suspended(&self) -> Option<NonZeroUsize> {
        // Acquire: pairs with the store of the switch, which is a Release as all stores of this processor are. So the frames
        // that are found at that address are those of the suspension, or later ones.
        NonZeroUsize::new(self.ends.task.load(Ordering::Acquire)).filter(|saved| saved.get() > ENDED)
    }

    /// The offset of the saved stack pointer, and how many bytes [`suspend`](Coroutine::suspend) pushes, for readers of
    /// memory.
    pub(crate) const SAVED: usize = offset_of!(Coroutine, ends) + offset_of!(Ends, task);
    pub(crate) const PUSHED: usize = 24;

    /// The offset of the base of its stack, for readers of memory.
    pub(crate) const BASE: usize = offset_of!(Coroutine, stack) + Stack::BASE;

    /// Returns where the coroutine goes on, if it is suspended. On any thread.
    ///
    /// `read` returns the word at an address, and fails where there is none.
    pub(crate) fn context(&self, read: impl FnMut(usize) -> Option<usize>) -> Option<SavedContext> {
        context(self.suspended()?.get(), read)
    }

    /// Reads where the coroutine at that address goes on.
    pub(crate) fn context_at(
        coroutine: usize,
        mut read: impl FnMut(usize) -> Option<usize>,
    ) -> Option<SavedContext> {
        let saved = read(coroutine + Self::SAVED)?;
        context(saved, read)
    }

    /// Takes the stack of a finished coroutine.
    ///
    /// # Safety
    /// The coroutine has finished.
    pub(crate) unsafe fn take_stack(&self) -> Stack {
        // Relaxed: as in `has_ended`.
        let saved = self.ends.task.load(Ordering::Relaxed);
        assert!(saved == ENDED, "a task is still on this stack");
        self.ends.task.store(0, Ordering::Relaxed);
        self.stack.take().expect("a finished coroutine has its stack")
    }
}

impl Drop for Coroutine {
    /// Aborts if the coroutine is bound: frames on its stack would refer to freed memory.
    fn drop(&mut self) {
        if self.stack.get_mut().is_some() {
            std::process::abort();
        }
    }
}

/// Reads what `suspend` has pushed.
fn context(saved: usize, mut read: impl FnMut(usize) -> Option<usize>) -> Option<SavedContext> {
    let (fp, sp) = (saved.checked_add(16)?, saved.checked_add(Coroutine::PUSHED)?);
    Some(SavedContext { pc: read(saved)?, sp, fp: read(fp)? })
}

/// The entry of a new stack: the words above the stack pointer are those that `Coroutine::bind` wrote.
#[unsafe(naked)]
unsafe extern "sysv64" fn start() {
    naked_asm!(
        "mov rdi, rax",
        "pop rsi",
        "pop rdx",
        // A frame without a caller: backtraces end here. Entered by a jump, since a call that never returns would shift the
        // return predictor by one.
        "xor ebp, ebp",
        "push 0",
        "jmp {first}",
        first = sym first,
    )
}

#[expect(improper_ctypes_definitions, reason = "`start` passes on what `Coroutine::bind` wrote")]
/// The first frame. `ends` is the value of the first resume.
unsafe extern "sysv64" fn first(ends: *const Ends, argument: NonNull<()>, body: Body) -> ! {
    // SAFETY: the coroutine stays in place while code runs on its stack.
    let ends = unsafe { &*ends };
    body(argument);
    // Relaxed: for this thread.
    ends.task.store(ENDED, Ordering::Relaxed);
    let mut nowhere = 0_usize;
    // SAFETY: as in `suspend`. A finished coroutine is never resumed, so its stack pointer is written to a variable of no use.
    _ = unsafe { switch!(&raw mut nowhere, ends.worker.get(), Resumed::FINISHED.0) };
    std::process::abort()
}

/// The part of the worker's stack that is free while a coroutine runs.
struct BelowWorker(NonZeroUsize);

// SAFETY: nothing lives between the saved stack pointer of the worker, less its red zone, and the guard of the thread's stack.
// The size of that part is unknown; a thread's stack is made for far more than a task's.
unsafe impl corosensei::stack::Stack for BelowWorker {
    fn base(&self) -> NonZeroUsize {
        self.0
    }

    fn limit(&self) -> NonZeroUsize {
        self.0
    }
}
