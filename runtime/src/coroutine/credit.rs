//! A coroutine that holds panics in the middle; `panics.rs` tells what for.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use corosensei::{Coroutine, Yielder};

use crate::coroutine::ends::Ends;
use crate::stack::handle::Stack;
use crate::stack::pool::Pool;
use crate::stack::stacks;
use crate::stack::stacks::{Config, Stacks};

/// A coroutine with panics that are under way (raised), each in a destructor that the one before runs.
///
/// Kept for good: its stack is never given back.
pub(crate) struct Credits {
    coroutine: Coroutine<Flip, (), (), Ends>,
    raised: usize,
    /// What it runs on.
    _stack: Stack,
}

// SAFETY: all that lives on its stack are the closure and the frames below, which hold nothing of any thread. std keeps its panic
// count per thread and nothing else of a panic; that the count changes where `raise` and `settle` are called is the purpose.
unsafe impl Send for Credits {}

/// What the coroutine does next.
#[derive(PartialEq, Eq)]
enum Flip {
    Raise,
    Settle,
}

/// Enough for [`Credits::MOST`], and for std's unwinder and its personality routine at the end, also in a build without
/// optimization.
const STACK: usize = 128 * 1024;

/// The stacks of all credits of the process: of regions, as those of tasks are, since a mapping for each would use up what the
/// system allows.
static STACKS: Mutex<Option<Pool>> = Mutex::new(None);

fn take_stack() -> io::Result<Stack> {
    let mut stacks = STACKS.lock().unwrap_or_else(PoisonError::into_inner);
    if stacks.is_none() {
        let config = Config { size: STACK, ..stacks::Config::default() };
        *stacks = Some(Stacks::new(config)?.pool());
    }
    stacks.as_mut().expect("made above").take()
}

impl Credits {
    /// How many can be raised at a time.
    pub(crate) const MOST: usize = 16;

    /// Makes some of which none is raised.
    ///
    /// # Errors
    /// Where there is no stack for them; the text names the limit.
    pub(crate) fn new() -> io::Result<Self> {
        let stack = take_stack()?;
        let coroutine = Coroutine::with_stack(Ends::of(&stack), |told: &Yielder<Flip, ()>, _raise| {
            raise(told);
            loop {
                serve(told);
            }
        });
        Ok(Credits { coroutine, raised: 0, _stack: stack })
    }

    pub(crate) fn raised(&self) -> usize {
        self.raised
    }

    /// Raises one more, which adds one to the calling thread's count.
    pub(crate) fn raise(&mut self) {
        assert!(self.raised < Self::MOST, "the stack has room for no more");
        self.raised += 1;
        self.coroutine.resume(Flip::Raise);
    }

    /// Has the last one caught, which takes one from the calling thread's count.
    pub(crate) fn settle(&mut self) {
        assert!(self.raised > 0, "none is raised");
        self.raised -= 1;
        self.coroutine.resume(Flip::Settle);
    }
}

/// Raises a panic, and returns when it was caught.
fn raise(told: &Yielder<Flip, ()>) {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _held = ServeInDrop(told);
        resume_unwind(Box::new(()));
    }));
    drop(caught);
}

/// Leaves the coroutine until it is told to settle the innermost panic; raises others inside it as it is told to.
fn serve(told: &Yielder<Flip, ()>) {
    while told.suspend(()) == Flip::Raise {
        raise(told);
    }
}

/// Serves when dropped, that is, while its panic is under way.
struct ServeInDrop<'a>(&'a Yielder<Flip, ()>);

impl Drop for ServeInDrop<'_> {
    fn drop(&mut self) {
        serve(self.0);
    }
}
