//! Runs code that needs more stack than its task has.
//!
//! The code runs as a coroutine on a stack of its own, which its task resumes. A suspension goes to
//! the task, which then suspends to the worker. So the task as a whole sleeps, and its state stays.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::thread;

use crate::api::sleep;
use crate::base::clock;
use crate::coroutine::own_stack::on_own_stack;
use crate::coroutine::switch::Coroutine;
use crate::scheduler::current;
use crate::scheduler::stack_queue::STACK_RETRY;
use crate::scheduler::worker::Worker;
use crate::stack::handle::Stack;
use crate::tasks::context;
use crate::tasks::header::{BigStack, Header, TaskRef};

/// Runs `f` on a stack of `size` bytes, and returns its value.
///
/// It is for deep recursion and for C code that needs much stack.
///
/// The stack belongs to the runtime, has a guard, and is kept for the next call with that size. `f`
/// runs in the calling task and may do all that the task may do; a switch inside costs twice as
/// much. Calls nest. On a plain thread the stack is made for the one call.
///
/// The stack counts against [`max_stacks`](crate::runtime::builder::Builder::max_stacks). Where all
/// are in use, the task waits for a free stack, a second at the most, unless
/// [`forbid_suspend`](crate::tasks::forbid::forbid_suspend) forbids that. No cancellation ends the
/// wait.
///
/// # Panics
/// Resumes a panic of `f`. Panics when no stack can be had; the message names the cause.
///
/// # Examples
/// ```
/// # use fibra_runtime::{self as fibra, task};
/// fn depth(levels: u64) -> u64 {
///     let local = std::hint::black_box([levels; 16]);
///     if levels == 0 { 0 } else { depth(levels - 1) + local[7] / levels }
/// }
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// assert_eq!(task::on_big_stack(64 << 20, || depth(100_000)), 100_000);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn on_big_stack<R>(size: usize, f: impl FnOnce() -> R) -> R {
    let mut call = Call { f: Some(f), result: None };
    let outcome = match context::task() {
        Some(task) => run_in(*task, size, &mut call),
        None => on_own_stack(size, || call.run()),
    };
    if let Err(error) = outcome {
        panic!("no stack of {size} bytes can be had: {error}");
    }
    match call.result.expect("a call that was run has a result") {
        Ok(value) => value,
        Err(payload) => resume_unwind(payload),
    }
}

/// The closure for the big stack, and its outcome.
struct Call<F, R> {
    f: Option<F>,
    result: Option<thread::Result<R>>,
}

impl<F: FnOnce() -> R, R> Call<F, R> {
    fn run(&mut self) {
        let f = self.f.take().expect("a call runs once");
        self.result = Some(catch_unwind(AssertUnwindSafe(f)));
    }
}

fn run_in<F: FnOnce() -> R, R>(task: TaskRef, size: usize, call: &mut Call<F, R>) -> io::Result<()> {
    let header = task.header();
    let stack = take_stack(header, size)?;
    let big = BigStack { coroutine: Coroutine::vacant(), outer: header.away() };
    let (inner, outer) = (&big.coroutine, big.outer);
    inner.bind(stack, NonNull::from(call).cast(), first_frame::<F, R>);
    header.change_stack(&big);
    loop {
        // SAFETY: bound just now, resumed by this frame alone until it has ended, and it stays in this frame.
        let result = unsafe { inner.resume() };
        if result.stop().is_none() {
            break;
        }
        // SAFETY: this code runs in the task, on the stack that it was on before.
        unsafe { header.suspend_from(outer, result) };
    }
    header.change_stack(outer);
    // SAFETY: it has finished.
    let stack = unsafe { inner.take_stack() };
    current::with_worker(|worker| worker.give_stack(stack));
    Ok(())
}

/// Takes a stack. Where the caller may wait, it waits for a free stack, as a starting task does.
fn take_stack(header: &Header, size: usize) -> io::Result<Stack> {
    let begin = clock::machine();
    loop {
        let take = |worker: &Worker| (worker.take_stack_of(size), worker.shared().config.stack_patience);
        match current::with_worker(take).expect("a task has a worker") {
            (Err(error), patience)
                if error.kind() == io::ErrorKind::OutOfMemory
                    && !header.is_forbidden()
                    && clock::machine().saturating_duration_since(begin) < patience => {}
            (taken, _) => {
                current::with_worker(Worker::stop_asking_for_stacks);
                return taken;
            }
        }
        sleep::sleep_shielded(STACK_RETRY);
    }
}

/// Runs the first frame on the big stack.
fn first_frame<F: FnOnce() -> R, R>(call: NonNull<()>) {
    // SAFETY: `run_in` has bound this frame to its call, waits for the end of the frame, and does not use the call meanwhile.
    unsafe { call.cast::<Call<F, R>>().as_mut().run() };
}
