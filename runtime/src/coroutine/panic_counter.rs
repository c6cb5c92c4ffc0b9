//! Panics held in the middle, by which std's panic count moves between threads; see `scheduler/panics.rs`.

use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use corosensei::{Coroutine, Yielder};

use crate::stack::handle::Stack;
use crate::stack::pool::Pool;
use crate::stack::stacks::{Config, Stacks};

/// A coroutine with panics under way, each raised in a destructor that runs for the one before.
///
/// Lives for ever: its stack is never given back.
pub(crate) struct PanicCounter {
    coroutine: Coroutine<Step, (), (), Ends>,
    raised: usize,
    /// The coroutine runs on it.
    _stack: Stack,
}

// SAFETY: the stack holds only the closure and the frames below it, which refer to nothing of a thread. std keeps its panic
// count per thread and nothing else of a panic. The count of the thread that calls `raise` or `settle` changes on purpose.
unsafe impl Send for PanicCounter {}

/// What the coroutine does next.
#[derive(PartialEq, Eq)]
enum Step {
    Raise,
    Settle,
}

/// Room for [`PanicCounter::MOST`] panics, and for std's unwinder and its personality routine, also without optimization.
const STACK: usize = 128 * 1024;

/// The stacks of all panic counters of the process. They share regions: a mapping for each would exhaust the system's limit.
static STACKS: Mutex<Option<Pool>> = Mutex::new(None);

fn take_stack() -> io::Result<Stack> {
    let mut stacks = STACKS.lock().unwrap_or_else(PoisonError::into_inner);
    if stacks.is_none() {
        let config = Config { size: STACK, ..Config::default() };
        *stacks = Some(Stacks::new(config)?.pool());
    }
    stacks.as_mut().expect("made above").take()
}

impl PanicCounter {
    /// The most panics that one counter holds.
    pub(crate) const MOST: usize = 16;

    /// Makes a counter without panics.
    ///
    /// # Errors
    /// Where no stack is left; the text names the limit.
    pub(crate) fn new() -> io::Result<Self> {
        let stack = take_stack()?;
        let coroutine = Coroutine::with_stack(Ends::of(&stack), |steps: &Yielder<Step, ()>, _raise| {
            raise(steps);
            loop {
                serve(steps);
            }
        });
        Ok(PanicCounter { coroutine, raised: 0, _stack: stack })
    }

    pub(crate) fn raised(&self) -> usize {
        self.raised
    }

    /// Raises one more panic, which adds one to the calling thread's count.
    pub(crate) fn raise(&mut self) {
        assert!(self.raised < Self::MOST, "the stack has no room for one more panic");
        self.raised += 1;
        self.coroutine.resume(Step::Raise);
    }

    /// Catches the last panic, which subtracts one from the calling thread's count.
    pub(crate) fn settle(&mut self) {
        assert!(self.raised > 0, "no panic is raised");
        self.raised -= 1;
        self.coroutine.resume(Step::Settle);
    }
}

/// Raises a panic, and returns when it is caught.
fn raise(steps: &Yielder<Step, ()>) {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _serves = ServeInDrop(steps);
        resume_unwind(Box::new(()));
    }));
    drop(caught);
}

/// Leaves the coroutine until the innermost panic is settled; raises further panics inside it on request.
fn serve(steps: &Yielder<Step, ()>) {
    while steps.suspend(()) == Step::Raise {
        raise(steps);
    }
}

/// Serves when dropped, that is, while its panic is under way.
struct ServeInDrop<'a>(&'a Yielder<Step, ()>);

impl Drop for ServeInDrop<'_> {
    fn drop(&mut self) {
        serve(self.0);
    }
}

/// The bounds of a stack. The stack itself stays with its owner for as long as code runs on it.
pub(super) struct Ends {
    base: NonZeroUsize,
    limit: NonZeroUsize,
}

impl Ends {
    pub(super) fn of(stack: &Stack) -> Self {
        let limit = NonZeroUsize::new(stack.limit()).expect("a mapping is never at address zero");
        Ends { base: stack.base(), limit }
    }
}

// SAFETY: a `Stack` is at least corosensei's minimum (checked where sizes are set), its low end is a guard that faults,
// and `limit` lies below that guard.
unsafe impl corosensei::stack::Stack for Ends {
    #[inline]
    fn base(&self) -> NonZeroUsize {
        self.base
    }

    #[inline]
    fn limit(&self) -> NonZeroUsize {
        self.limit
    }
}
