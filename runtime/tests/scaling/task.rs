//! A task of the simulation, with as much of a header as `queue.rs` asks for.

use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicPtr;

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
    pub(crate) next: AtomicPtr<Header>,
    pub(crate) id: usize,
    /// Somebody keeps its handle.
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
pub(crate) struct TaskRef(NonNull<Header>);

impl TaskRef {
    /// As the real one's: the pointer is one that `as_ptr` gave.
    pub(crate) fn new(header: NonNull<Header>) -> TaskRef {
        TaskRef(header)
    }

    pub(crate) fn make(id: usize, held: bool, job: Job) -> TaskRef {
        TaskRef(NonNull::from(Box::leak(Box::new(Header {
            next: AtomicPtr::new(ptr::null_mut()),
            id,
            held,
            job: RefCell::new(job),
            born: Cell::new(0),
            placed: Cell::new(false),
            started: Cell::new(false),
            ended: Cell::new(false),
        }))))
    }

    pub(crate) fn as_ptr(self) -> *mut Header {
        self.0.as_ptr()
    }

    pub(crate) fn header<'a>(self) -> &'a Header {
        // SAFETY: `make` has leaked it, and nobody has a unique reference.
        unsafe { self.0.as_ref() }
    }
}
