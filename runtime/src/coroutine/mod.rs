//! Coroutines: one task on one stack, resumed by a worker, suspended by itself.
//!
//! | file | is |
//! | --- | --- |
//! | `native.rs` | the switch on x86-64, ours |
//! | `portable.rs` | the switch elsewhere and under AddressSanitizer, by corosensei, which only this folder names |
//! | `credit.rs` | a panic held in the middle |
//!
//! Both offer the same: [`Coroutine`] to the worker, [`Suspender`] to the task. The panic of a task never reaches here:
//! the task's own root catches it.
//!
//! # Why a switch of our own
//!
//! corosensei enters a coroutine by `call` and leaves it by `ret`, which pair in the processor's return predictor only
//! if nothing was called in between. A task that sleeps in a lock or a socket suspends several calls deep, and then
//! that `ret`, and returns after it, go where they were not predicted to. Measured on a Zen 5: 4.6 ns for a round trip
//! with no call in between, 19 to 22 with one to four. A switch by `jmp` both ways leaves the predictor alone: 4.1, and
//! 6.6 to 7.8. A yield of fibra fell from 30 to 15 ns by it. What corosensei's way has in return, backtraces that go on
//! into the worker, nobody misses.
//!
//! Rejected: a task that leaves its stack going straight on with the next one that is ready, past the worker's. It was built
//! and was not faster in any row (two tasks that yield 25 ns before and 26 after, two events 90 and 96): the loop's jumps are
//! predicted, and what it looks at between two tasks has to be looked at either way. A call that is open over such a switch
//! costs twice as much again (47), as its return goes where it was not predicted to.

mod credit;
#[cfg(all(target_arch = "x86_64", unix, not(feature = "sanitizer")))]
#[path = "native.rs"]
mod switch;
#[cfg(not(all(target_arch = "x86_64", unix, not(feature = "sanitizer"))))]
#[path = "portable.rs"]
mod switch;

pub(crate) use credit::Credit;
pub(crate) use switch::{Coroutine, Suspender, on_worker_stack};

use std::io;

use corosensei::stack::DefaultStack;

use crate::stack;
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

/// A task's first frame. Does not unwind.
pub(crate) type Body = fn(TaskRef, &Suspender);

/// Runs `f` on a stack of `size` bytes that is made for it; for threads that run no task. `f` does not unwind.
pub(crate) fn on_own_stack(size: usize, f: impl FnOnce()) -> io::Result<()> {
    stack::check_fits(size)?;
    corosensei::on_stack(DefaultStack::new(size)?, f);
    Ok(())
}
