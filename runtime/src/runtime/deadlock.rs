//! Deadlocks: tasks that wait for each other.

#![forbid(unsafe_code)]

use std::fmt;

use crate::scheduler::waits::{TaskDump, in_lines, look_at};

/// Tells of tasks that wait for each other, likely for ever.
///
/// See [`WaitGraph`](crate::task::WaitGraph), which has the limits, and [`Builder::on_deadlock`](crate::Builder::on_deadlock).
#[derive(Clone, Debug)]
pub struct Deadlock {
    tasks: Vec<TaskDump>,
}

impl Deadlock {
    pub(super) fn of(tasks: Vec<TaskDump>) -> Self {
        Deadlock { tasks }
    }

    /// Returns the tasks: each waits for the next one, and the last one for the first, where the cycle has no branches.
    ///
    /// In a report by the runtime they have their stacks.
    pub fn tasks(&self) -> &[TaskDump] {
        &self.tasks
    }

    pub(super) fn headline(&self) -> String {
        match self.tasks.len() {
            1 => "a likely deadlock: a task waits for itself".to_owned(),
            count => format!("a likely deadlock: {count} tasks wait for each other"),
        }
    }

    pub(super) fn sleeps(&self) -> Sleeps {
        self.tasks.iter().map(|task| (task.task().id(), task.epoch)).collect()
    }

    /// Looks at the tasks again, with their stacks. Returns `None` if one of them has woken meanwhile.
    pub(super) fn with_stacks(&self) -> Option<Deadlock> {
        let tasks = self.tasks.iter().map(|task| task.task().clone()).collect();
        let tasks = look_at(tasks, true);
        Some(Deadlock { tasks }).filter(|again| again.sleeps() == self.sleeps())
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        f.write_str(&in_lines(&self.tasks))
    }
}

/// Tells a cycle from all others: the tasks by their ids, and their sleeps.
pub(super) type Sleeps = Vec<(u64, Option<u64>)>;
