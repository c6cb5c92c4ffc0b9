//! What a reader outside of the tasks sees of a runtime: its tasks, and what its workers count.

#![forbid(unsafe_code)]

use crate::runtime::handle::Handle;
use crate::runtime::report;
use crate::scheduler::waits::in_lines;
use crate::tasks::task::Task;
use crate::waiter::description::WaitsFor;

impl Handle {
    /// Returns all tasks that have started and not ended.
    ///
    /// A task that starts or ends during the call may be missing. Callable from any thread, also
    /// while workers are stuck in tasks.
    #[doc(hidden)]
    pub fn started_tasks(&self) -> Vec<Task> {
        report::tasks(self.shared())
    }

    /// Lists started tasks, each on a line with what it waits for. Each line follows a line break.
    #[doc(hidden)]
    pub fn describe_waits(&self, tasks: Vec<Task>) -> String {
        in_lines(&self.shared().waits_of(tasks))
    }

    /// Lists all tasks as they were when none of them could be woken any more, in virtual time.
    #[doc(hidden)]
    pub fn take_deadlock(&self) -> Option<String> {
        self.shared().virtual_time.take_deadlock()
    }

    /// Counts the tasks and the closures for the pool that have not started.
    #[doc(hidden)]
    pub fn unstarted_tasks(&self) -> u64 {
        report::unstarted(self.shared(), self.started_tasks().len())
    }

    /// Returns what each worker counts, with the names of the numbers.
    #[doc(hidden)]
    pub fn counters(&self) -> Vec<[(&'static str, u64); 11]> {
        self.shared().blocks.iter().map(|block| block.counters.read()).collect()
    }

    /// Returns what a task waits for, or `None` if it is not asleep.
    ///
    /// It may be `None` while the task falls asleep or wakes.
    #[doc(hidden)]
    pub fn waits_for(&self, task: &Task) -> Option<WaitsFor> {
        self.shared().waits_for(task)
    }
}
