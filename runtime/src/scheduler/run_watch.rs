//! What one worker says of its present run.
//!
//! ```text
//!  the worker, who alone writes                      the watch
//!
//!  begin   number := number + 1                      look   the address, then the number
//!          task := address                                  …
//!  …                                                 find   the task at that address, under the locks of the registries,
//!  end     task := null                                     then look again
//!          and then the task leaves its registry
//! ```
//!
//! * Who sees an address sees the number of its run, or a later one.
//! * The watch trusts no address: it is looked up among the tasks that are alive. A task that has taken the place of the one that
//!   was seen entered a registry after that one had left it, so after the end of its run: the second look then sees that end, or a
//!   later run. If it sees what the first one saw, the worker has been in that one run all the time, and it is that run's task.
//! * A run in which a task goes to sleep ends with the next one, or when its worker rests.

#![forbid(unsafe_code)]

use std::ptr;

use crate::base::primitive::{AtomicPtr, AtomicU64, Ordering};
use crate::tasks::header::{Header, TaskRef};

/// The present run of one worker.
#[derive(Default)]
pub(crate) struct Run {
    number: AtomicU64,
    task: AtomicPtr<Header>,
}

/// One look at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sight {
    /// Null: there is no run.
    task: *const Header,
    pub(crate) number: u64,
}

impl Run {
    /// By the worker.
    #[cold]
    pub(crate) fn begin(&self, task: TaskRef) {
        // Relaxed: published by the address.
        self.number.store(self.number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Release: pairs with the Acquire in `look`, which then sees this number or a later one.
        self.task.store(task.as_ptr(), Ordering::Release);
    }

    /// By the worker, which rests, or has run a task to its end and not yet taken it out of its registry.
    pub(crate) fn end(&self) {
        // Relaxed: published by the lock of the registry. A rest is seen sooner or later, and by then no run began: the number
        // would tell.
        self.task.store(ptr::null_mut(), Ordering::Relaxed);
    }

    pub(crate) fn look(&self) -> Sight {
        // Acquire: pairs with the Release in `begin`.
        let task = self.task.load(Ordering::Acquire);
        // Relaxed: ordered by the Acquire.
        Sight { task, number: self.number.load(Ordering::Relaxed) }
    }

    /// The task of the run that was seen, which `find` looks up by its address among those that are alive. None if that run is
    /// over.
    pub(crate) fn task_of<T>(
        &self,
        sight: Sight,
        find: impl FnOnce(*const Header) -> Option<T>,
    ) -> Option<T> {
        let task = find(sight.task)?;
        // After the lock of the registry, which publishes the ends of the runs of all who have left it.
        (self.look() == sight).then_some(task)
    }
}

impl Sight {
    pub(crate) fn is_of_a_run(self) -> bool {
        !self.task.is_null()
    }
}
