//! A task, reduced to what the files that are included ask of one.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use loom::cell::UnsafeCell;

pub(crate) use crate::join_state::{Join, JoinState};
use crate::primitive::{AtomicBool, AtomicPtr, Ordering};

/// What a queue sees of a task.
pub(crate) struct Header {
    next: AtomicPtr<Header>,
    /// Touched by whoever has the task: not by two at a time.
    pub(crate) state: UnsafeCell<u32>,
}

impl Header {
    pub(crate) fn new() -> Self {
        let header = Header { next: AtomicPtr::new(ptr::null_mut()), state: UnsafeCell::new(0) };
        header.next.load(Ordering::Relaxed);
        header
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskRef(NonNull<Header>);

impl TaskRef {
    /// The models keep their tasks until all threads have ended.
    pub(crate) fn of(header: &Header) -> Self {
        TaskRef(NonNull::from(header))
    }

    pub(crate) fn from_ptr(header: *mut Header) -> Option<Self> {
        NonNull::new(header).map(TaskRef)
    }

    pub(crate) fn as_ptr(self) -> *mut Header {
        self.0.as_ptr()
    }

    pub(crate) fn header<'a>(self) -> &'a Header {
        // SAFETY: by `of`.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn next(self) -> Option<TaskRef> {
        Self::from_ptr(self.header().next.load(Ordering::Relaxed))
    }

    pub(crate) fn set_next(self, next: Option<TaskRef>) {
        self.header().next.store(next.map_or(ptr::null_mut(), TaskRef::as_ptr), Ordering::Relaxed);
    }
}

/// A counted handle.
#[derive(Clone)]
pub(crate) struct Task(Arc<AtomicBool>);

impl Task {
    pub(crate) fn new() -> Self {
        let task = Task(Arc::new(AtomicBool::new(false)));
        assert!(!task.is_cancelled());
        task
    }

    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
