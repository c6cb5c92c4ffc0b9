//! The present run of a worker, as the watchdog sees it.
//!
//! ```text
//!  the worker, which alone writes                    the watchdog
//!
//!  begin   number := number + 1                      look   the address, then the number
//!          task := address                                  …
//!  …                                                 find   the task at that address, under the locks of the registries,
//!  end     task := null                                     then look again
//!          and then the task leaves its registry
//! ```
//!
//! * A reader that sees an address sees the number of its run, or a later one.
//! * The watchdog does not trust an address: it looks the address up among the live tasks. Another
//!   task may have reused it. That task entered a registry after the seen task had left it, hence
//!   after the end of its run. The second look then sees that end, or a later run. If it sees what
//!   the first look saw, the worker has been in that one run all the time, and the task is that
//!   run's.
//! * A run in which a task goes to sleep ends with the next one, or when its worker rests.

#![forbid(unsafe_code)]

use std::ptr;

use crate::base::primitive::{AtomicPtr, AtomicU64, Ordering};
use crate::tasks::header::{Header, TaskRef};

/// Publishes the present run of one worker.
#[derive(Default)]
pub(crate) struct Run {
    number: AtomicU64,
    task: AtomicPtr<Header>,
}

/// Records one look at a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sight {
    /// Null: there is no run.
    task: *const Header,
    pub(crate) number: u64,
}

impl Run {
    /// Begins a run. Called by the worker.
    #[cold]
    pub(crate) fn begin(&self, task: TaskRef) {
        // Relaxed: published by the address.
        self.number.store(self.number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Release: pairs with the Acquire in `look`, which then sees this number or a later one.
        self.task.store(task.as_ptr(), Ordering::Release);
    }

    /// Ends the run.
    ///
    /// Called by a worker that rests, or that has run a task to its end, before the task leaves its
    /// registry.
    pub(crate) fn end(&self) {
        // Relaxed: published by the lock of the registry. A late view of a rest is harmless: no run
        // began, or the number differs.
        self.task.store(ptr::null_mut(), Ordering::Relaxed);
    }

    pub(crate) fn look(&self) -> Sight {
        // Acquire: pairs with the Release in `begin`.
        let task = self.task.load(Ordering::Acquire);
        // Relaxed: ordered by the Acquire.
        Sight { task, number: self.number.load(Ordering::Relaxed) }
    }

    /// Returns the task of the seen run, or `None` if that run is over.
    ///
    /// `find` looks it up by its address among the live tasks.
    pub(crate) fn task_of<T>(
        &self,
        sight: Sight,
        find: impl FnOnce(*const Header) -> Option<T>,
    ) -> Option<T> {
        let task = find(sight.task)?;
        // After the lock of the registry, which publishes the ends of the runs of all tasks that
        // left it.
        (self.look() == sight).then_some(task)
    }
}

impl Sight {
    pub(crate) fn is_of_a_run(self) -> bool {
        !self.task.is_null()
    }
}
