//! What passes between a task and its worker at a switch.

#![forbid(unsafe_code)]

use std::ptr::NonNull;

/// Why a task left its stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// The task lets others run, and is still ready.
    Yielded,
    /// The task sleeps; its wait word says when it is ready again.
    Asleep,
}

/// The result of a resume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Resumed(pub(super) usize);

impl Resumed {
    pub(crate) const YIELDED: Self = Resumed(0);
    pub(crate) const ASLEEP: Self = Resumed(1);
    pub(super) const FINISHED: Self = Resumed(2);
    /// The task stopped in a run in which its worker took up a recorder.
    const TRACED: usize = 1 << 2;

    /// Asks the worker to record the stop.
    pub(crate) fn traced(self) -> Self {
        Resumed(self.0 | Self::TRACED)
    }

    /// Returns why the task stopped; `None` if it has ended.
    #[inline(always)]
    pub(crate) fn stop(self) -> Option<Stop> {
        match Resumed(self.0 & !Self::TRACED) {
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

/// The first frame of a coroutine, called with the argument of `bind`. Does not unwind.
pub(crate) type Body = fn(NonNull<()>);
