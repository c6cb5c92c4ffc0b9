//! The place of a task that runs on a larger stack for a while.

#![forbid(unsafe_code)]

use crate::coroutine::switch::Coroutine;

/// A big stack that a task has gone to; lies in the frame that waits there.
pub(crate) struct BigStack {
    pub(crate) coroutine: Coroutine,
    /// The code that its first frame runs.
    pub(crate) errand: *mut (),
}
