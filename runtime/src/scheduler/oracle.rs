//! The seam of simulations: an oracle decides which task runs next. `simulated.rs` asks it.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::tasks::task::Task;

/// Chooses the next task of a simulated runtime.
pub trait Oracle: Send + Sync + 'static {
    /// Returns the index of the task that is to run.
    ///
    /// `ready` has the ids of the tasks that can run, in the order in which they became ready. At a
    /// point the first one is the running task. `task` returns the one at an index, for its name. The
    /// result is an index of `ready`.
    fn choose(&self, asked: Asked, ready: &[u64], task: &dyn Fn(usize) -> Task) -> usize;

    /// Takes the news that all tasks sleep for ever, after main tasks were cancelled or the end has begun.
    ///
    /// `waits` lists what they wait for. The runtime never ends then, so this may keep the thread.
    fn stuck(&self, waits: String);
}

/// Tells why an oracle is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// No task runs.
    Pick,
    /// A task is about to do something that others can see.
    Point,
}

/// What a simulated worker needs.
pub(super) struct Simulation {
    pub(super) oracle: Arc<dyn Oracle>,
    /// The index of the next task in the queue, if it was chosen at a point.
    pub(super) chosen: Cell<Option<usize>>,
    /// The ids of one question, kept for the next.
    pub(super) ids: RefCell<Vec<u64>>,
}

impl Simulation {
    pub(super) fn new(oracle: &Arc<dyn Oracle>) -> Self {
        Simulation { oracle: Arc::clone(oracle), chosen: Cell::new(None), ids: RefCell::default() }
    }
}
