//! The switch on x86-64.
//!
//! ```text
//!  a stack that is not running            a stack that never ran
//!  ┌ rbp                                  ┌ 0, 0            (for the alignment)
//!  │ rbx                                  │ body
//!  │ where to go on  ◀── saved pointer    │ task
//!  └                                      └ `start`         ◀── saved pointer
//! ```
//!
//! A switch pushes what the compiler will not save around an `asm!` block by itself (`rbp`, `rbx`) and the address to go
//! on at, saves the stack pointer, takes the other one, and jumps to the address that it pops there. All other registers
//! are declared as lost, so that the compiler saves just those that hold something. The control words of the floating
//! point units are not switched: as in any function call they are the thread's.

use std::arch::{asm, naked_asm};
use std::cell::Cell;
use std::marker::PhantomPinned;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use crate::base::prefetch;
use crate::coroutine::{Body, Resumed, Stop};
use crate::stack::handle::Stack;
use crate::tasks::header::{Header, TaskRef};

/// Saves where this stack stands in `from` and goes on with the one that stands at `to`, which gets `value`. The value that comes
/// with the switch back. A macro, so that the worker's side may say what it does before the jump.
///
/// # Safety
/// `to` was saved by this macro, or made by `Coroutine::bind`, and was not switched to since. `from` is valid until the switch
/// back.
macro_rules! switch {
    ($from:expr, $to:expr, $value:expr $(, $before_jump:literal)* $(,)?) => {{
        let back: usize;
        // Registers that are not pushed are declared as lost; what is pushed is popped on the way back, on the same stack.
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

/// A place for a task on a stack. Stays where it is while there is one.
#[repr(C)]
pub(crate) struct Coroutine {
    ends: Ends,
    stack: Cell<Option<Stack>>,
}

/// Where the two sides of a coroutine stand.
#[repr(C)]
struct Ends {
    /// The task's stack pointer, while it does not run; null before it is bound and after its end.
    task: Cell<usize>,
    /// The worker's, while the task runs.
    worker: Cell<usize>,
    _pinned: PhantomPinned,
}

impl Coroutine {
    pub(crate) const fn vacant() -> Self {
        let ends = Ends { task: Cell::new(0), worker: Cell::new(0), _pinned: PhantomPinned };
        Coroutine { ends, stack: Cell::new(None) }
    }

    /// Binds `task` to `stack`; `body` runs at the first resume.
    pub(crate) fn bind(&self, stack: Stack, task: TaskRef, body: Body) {
        let base = stack.base().get();
        let before = self.stack.replace(Some(stack));
        assert!(before.is_none(), "a task is on this stack");
        let frame: [usize; 5] =
            [start as *const () as usize, task.as_ptr().expose_provenance(), body as usize, 0, 0];
        let top = base - size_of_val(&frame);
        // SAFETY: the stack is ours alone, it has room for five words below its base (a page at the least), and its base
        // is a multiple of 16.
        unsafe { std::ptr::with_exposed_provenance_mut::<[usize; 5]>(top).write(frame) };
        self.ends.task.set(top);
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
    #[inline(always)]
    pub(crate) unsafe fn resume(&self) -> Resumed {
        let ends = &self.ends;
        debug_assert!(ends.task.get() != 0, "nobody is on this stack");
        let own = std::ptr::from_ref(ends).expose_provenance();
        // SAFETY: by the contract the task's pointer was saved by `suspend`, or made by `bind`, and nobody else resumes it.
        // `ends` stays in place.
        let back = unsafe {
            switch!(
                ends.worker.as_ptr(),
                ends.task.get(),
                own,
                // Three branches to where the code goes on anyway, by bits of the address to jump to: see the head of `mod.rs`.
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

    /// Leaves the stack, until the task is resumed.
    ///
    /// # Safety
    /// The caller runs on this stack.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, stop: Stop) {
        let ends = &self.ends;
        // SAFETY: by the contract the worker's pointer was saved by the `resume` that runs this code, and nobody else has gone
        // on from there. `ends` stays in place.
        _ = unsafe { switch!(ends.task.as_ptr(), ends.worker.get(), Resumed::from(stop).0) };
    }

    /// Runs `f` on the stack of the worker that resumed the task. `f` does not suspend.
    ///
    /// # Safety
    /// The caller runs on this stack.
    pub(crate) unsafe fn on_worker_stack<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        /// Leaf functions may use so many bytes below the stack pointer; and the pointer is aligned down.
        const BELOW: usize = 128;
        let free = (self.ends.worker.get() - BELOW) & !(corosensei::stack::STACK_ALIGNMENT - 1);
        let free = NonZeroUsize::new(free).expect("a running task has a worker");
        corosensei::on_stack(BelowWorker(free), f)
    }

    /// Fetches into the cache what a resume will touch first: the end of the stack, where the sleeper has left its registers, as a
    /// rule in its caller's frame. No more than that: of six lines most were thrown out of the cache unused, and other tasks with
    /// them, and a thousand that yield took 20 ns each instead of 15.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch::prefetch(self.ends.task.get());
    }

    /// Takes the stack of a finished coroutine.
    ///
    /// # Safety
    /// It has finished.
    pub(crate) unsafe fn take_stack(&self) -> Stack {
        assert!(self.ends.task.get() == 0, "a task is still on this stack");
        self.stack.take().expect("a finished coroutine has its stack")
    }
}

impl Drop for Coroutine {
    /// A coroutine ends by its task's end and `take_stack`. One that is dropped with frames on it would leave them
    /// dangling.
    fn drop(&mut self) {
        if self.stack.get_mut().is_some() {
            std::process::abort();
        }
    }
}

/// Where a stack that never ran begins: the words above the stack pointer are those that `Coroutine::bind` has written.
#[unsafe(naked)]
unsafe extern "C" fn start() {
    naked_asm!(
        "mov rdi, rax",
        "pop rsi",
        "pop rdx",
        // A frame without a caller: backtraces end here. Entered by a jump, since a call that never returns would set the
        // predictor of returns off by one.
        "xor ebp, ebp",
        "push 0",
        "jmp {first}",
        first = sym first,
    )
}

#[expect(
    improper_ctypes_definitions,
    reason = "both ends are ours: `start` hands on what `Coroutine::bind` has written"
)]
/// The first frame: `ends` came with the first resume.
unsafe extern "C" fn first(ends: *const Ends, task: NonNull<Header>, body: Body) -> ! {
    // SAFETY: the coroutine stays in place while its task is on the stack.
    let ends = unsafe { &*ends };
    body(TaskRef::new(task));
    ends.task.set(0);
    let mut nowhere = 0_usize;
    // SAFETY: as in `suspend`. Nobody resumes a finished coroutine, so that where it stands is written to nowhere.
    _ = unsafe { switch!(&raw mut nowhere, ends.worker.get(), Resumed::FINISHED.0) };
    std::process::abort()
}

/// The part of the worker's stack that is free while the task runs.
struct BelowWorker(NonZeroUsize);

// SAFETY: between the saved stack pointer of the worker, less what its frame may use below that, and the guard of the
// thread's stack nothing lives. How much there is is not known; it is a thread's stack, made for far more than a task's.
unsafe impl corosensei::stack::Stack for BelowWorker {
    fn base(&self) -> NonZeroUsize {
        self.0
    }

    fn limit(&self) -> NonZeroUsize {
        self.0
    }
}
