//! Coroutines: one task on one stack, resumed by a worker, suspended by itself.
//!
//! | file | is |
//! | --- | --- |
//! | `native.rs` | the switch on x86-64, ours |
//! | `portable.rs` | the switch elsewhere and under AddressSanitizer, by corosensei, which only this folder names |
//! | `credit.rs` | panics held in the middle |
//! | `ends.rs` | a stack of ours as corosensei wants it |
//!
//! Both offer the same [`Coroutine`](switch::Coroutine): to the worker, which resumes it, and to the task, which suspends itself. The panic of a
//! task never reaches here: the task's own root catches it.
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
//! # What the processor has to guess
//!
//! A switch costs what is guessed wrongly around it; measured on a Zen 3, 5 to 10 ns each.
//!
//! * **Returns.** What a task has called and not returned from when it sleeps lies on the predictor's stack when the next task
//!   returns. Where all tasks wait in the same places that is right by chance. Where two different ones take turns each such
//!   return is wrong, and what is run meanwhile spoils the entries below. So the waits that two tasks meet at (events, receives,
//!   conditions, joins, parks, reads of sockets) are inlined with the switch into the code of the user, and only calls that come
//!   back stay calls. By it alone two events to and fro fell from 77 to 58 ns, two channels of one slot from 86 to 61.
//! * **The jump to a task.** It is guessed from the taken branches before it; how far back that goes was measured with two
//!   targets in turn: up to 8 such branches after what tells the two apart cost nothing, more than 10 make every guess wrong.
//!   So the worker's loop is laid out straight for the usual way, and the resume takes three branches by bits of the address
//!   that it is about to jump to: conditional ones are guessed from a longer past, and they put the address into the near one.
//!   Before that a yield between two tasks took 20 or 38 ns, from one build to the next. Where code comes to lie still matters:
//!   of a dozen builds one took 80 ns for the two events, with the same instructions.
//!
//! Rejected: a task that leaves its stack going straight on with the next one that is ready, past the worker's. It was built
//! and was not faster in any row (two tasks that yield 25 ns before and 26 after, two events 90 and 96): the loop's jumps are
//! predicted, and what it looks at between two tasks has to be looked at either way. A call that is open over such a switch
//! costs twice as much again (47), as its return goes where it was not predicted to.

pub(crate) mod credit;
pub(crate) mod ends;
#[cfg(all(target_arch = "x86_64", unix, not(feature = "sanitizer")))]
#[path = "native.rs"]
pub(crate) mod switch;
#[cfg(not(all(target_arch = "x86_64", unix, not(feature = "sanitizer"))))]
#[path = "portable.rs"]
pub(crate) mod switch;

use std::io;

use corosensei::stack::DefaultStack;

use crate::stack::size;
use crate::tasks::header::TaskRef;

/// Why a task left its stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// To let others run; it is still ready.
    Yielded,
    /// To sleep: its wait word says when it is ready again.
    Asleep,
}

/// What came of a resume, as it passes from the task to the worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Resumed(usize);

impl Resumed {
    const YIELDED: Self = Resumed(0);
    const ASLEEP: Self = Resumed(1);
    const FINISHED: Self = Resumed(2);

    /// Why the task stopped; `None` if it has ended.
    #[inline(always)]
    pub(crate) fn stop(self) -> Option<Stop> {
        match self {
            Resumed::YIELDED => Some(Stop::Yielded),
            Resumed::ASLEEP => Some(Stop::Asleep),
            _ => None,
        }
    }
}

impl From<Stop> for Resumed {
    #[inline(always)]
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Yielded => Resumed::YIELDED,
            Stop::Asleep => Resumed::ASLEEP,
        }
    }
}

/// A task's first frame. Does not unwind.
pub(crate) type Body = fn(TaskRef);

/// Runs `f` on a stack of `size` bytes that is made for it; for threads that run no task. `f` does not unwind.
pub(crate) fn on_own_stack(size: usize, f: impl FnOnce()) -> io::Result<()> {
    size::check_fits(size)?;
    corosensei::on_stack(DefaultStack::new(size)?, f);
    Ok(())
}
