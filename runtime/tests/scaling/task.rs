//! A task of the simulation, with as much of a header as `queue.rs` asks for.

use std::cell::{Cell, RefCell};

/// What a task does when it runs.
#[derive(Clone)]
pub(crate) enum Job {
    /// Computes for so long, and ends.
    Compute(u64),
    /// Spawns these, and ends, or waits for all of them.
    Spawn { children: Vec<TaskRef>, waits: bool },
    /// Computes for so long at each of these times, and sleeps in between.
    Serve { length: u64, times: Vec<u64> },
}

pub(crate) struct Header {
    next: Cell<Option<TaskRef>>,
    pub(crate) id: usize,
    /// Its handle is kept.
    pub(crate) held: bool,
    pub(crate) job: RefCell<Job>,
    /// When it was spawned.
    pub(crate) born: Cell<u64>,
    pub(crate) placed: Cell<bool>,
    pub(crate) started: Cell<bool>,
    pub(crate) ended: Cell<bool>,
}

/// A task. Never freed: those of a whole run are a megabyte.
#[derive(Clone, Copy)]
pub(crate) struct TaskRef(&'static Header);

impl TaskRef {
    pub(crate) fn make(id: usize, held: bool, job: Job) -> TaskRef {
        TaskRef(Box::leak(Box::new(Header {
            next: Cell::new(None),
            id,
            held,
            job: RefCell::new(job),
            born: Cell::new(0),
            placed: Cell::new(false),
            started: Cell::new(false),
            ended: Cell::new(false),
        })))
    }

    pub(crate) fn header(self) -> &'static Header {
        self.0
    }

    pub(crate) fn next(self) -> Option<TaskRef> {
        self.0.next.get()
    }

    pub(crate) fn set_next(self, next: Option<TaskRef>) {
        self.0.next.set(next);
    }
}
