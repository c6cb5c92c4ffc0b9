//! A task, reduced to what the files that are included ask of one.

#[path = "../../src/tasks/bounds.rs"]
pub(crate) mod bounds;
#[path = "../../src/tasks/cancel_flags.rs"]
pub(crate) mod cancel_flags;
#[path = "../../src/api/scope_children.rs"]
mod children;
#[path = "children_models.rs"]
mod children_models;
#[path = "../../src/tasks/enclosing.rs"]
mod enclosing;
#[path = "../../src/tasks/refs.rs"]
pub(crate) mod refs;
#[path = "../../src/api/cancel_token.rs"]
pub(crate) mod token;

use std::cell::Cell;
use std::ptr::{self, NonNull};

use loom::cell::UnsafeCell;

use crate::primitive::{Arc, AtomicPtr, Ordering};
use crate::wait::Sleeper;
use bounds::{Bound, Look};
use cancel_flags::CancelFlags;

/// The payload of a cancellation: no model unwinds.
pub(crate) mod cancel {
    use std::any::Any;

    use super::{Header, bounds::Bound};

    pub(crate) struct Cancelled;

    impl Cancelled {
        pub(crate) fn ends(_payload: &(dyn Any + Send), _header: &Header, _bound: Option<&Bound>) -> bool {
            unreachable!("no model unwinds")
        }
    }
}

/// What a queue, a waker and a canceller see of a task.
pub(crate) struct Header {
    next: AtomicPtr<Header>,
    /// Touched by the owner of the task: not by two threads at a time.
    pub(crate) state: UnsafeCell<u32>,
    pub(crate) cancel_flags: CancelFlags,
    pub(crate) bounds: Cell<*const Bound>,
    pub(crate) unwound: Cell<u16>,
    pub(crate) sleeper: std::sync::Arc<Sleeper>,
}

impl Header {
    pub(crate) fn new() -> Self {
        let header = Header {
            next: AtomicPtr::new(ptr::null_mut()),
            state: UnsafeCell::new(0),
            cancel_flags: CancelFlags::new(),
            bounds: Cell::new(ptr::null()),
            unwound: Cell::new(0),
            sleeper: Sleeper::new(),
        };
        header.next.load(Ordering::Relaxed);
        assert!(!header.cancel_flags.any());
        let _ = header.sleeper.word.begin(true);
        header
    }

    /// A sleep that only a cancel ends, or a token; as `sleep_in` and `Worker::settle`.
    pub(crate) fn sleep_until_cancelled(&self) {
        let sleeper = &self.sleeper;
        let _ = sleeper.word.begin(!self.is_open());
        sleeper.leave_stack_and(|| {
            if self.cancel_flags.any() && self.hit(Look::Flags).is_some() {
                sleeper.settle(sleeper.word.cancel());
            }
        });
        assert!(sleeper.word.why().cancelled, "no thread notifies it");
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
        // SAFETY: by `of`, or by the count of a handle.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn next(self) -> Option<TaskRef> {
        Self::from_ptr(self.header().next.load(Ordering::Relaxed))
    }

    pub(crate) fn set_next(self, next: Option<TaskRef>) {
        self.header().next.store(next.map_or(ptr::null_mut(), TaskRef::as_ptr), Ordering::Relaxed);
    }

    /// As in `task/cancel.rs`.
    pub(crate) fn fire(self) {
        self.header().cancel_flags.set_fired();
        self.rouse();
    }

    /// The same.
    pub(crate) fn cancel(self) {
        self.header().cancel_flags.set_cancelled();
        self.rouse();
    }

    fn rouse(self) {
        let sleeper = &self.header().sleeper;
        sleeper.settle(sleeper.word.cancel());
    }
}

/// A counted handle.
#[derive(Clone)]
pub(crate) struct Task(Arc<Header>);

impl Task {
    pub(crate) fn new() -> Self {
        Task(Arc::new(Header::new()))
    }

    pub(crate) fn counted(task: TaskRef) -> Self {
        // SAFETY: each running task was made by `new`, and has a handle that counts.
        unsafe {
            Arc::increment_strong_count(task.as_ptr());
            Task(Arc::from_raw(task.as_ptr()))
        }
    }

    pub(crate) fn as_ref(&self) -> TaskRef {
        TaskRef::of(&self.0)
    }

    pub(crate) fn header(&self) -> &Header {
        &self.0
    }

    pub(crate) fn cancel(&self) {
        self.as_ref().cancel();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.cancel_flags.is_cancelled()
    }
}
