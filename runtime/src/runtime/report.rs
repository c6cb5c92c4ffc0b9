//! What is left of a runtime, for reports: its tasks, and what each of them waits for.

#![forbid(unsafe_code)]

use std::collections::HashMap;

use crate::blocking::pool::{OnThread, Pool};
use crate::scheduler::shared::Shared;
use crate::scheduler::waits::{TaskDump, in_lines, look_at};
use crate::tasks::task::Task;

/// Returns all tasks that have started and not ended, with those on the blocking pool.
pub(super) fn tasks(shared: &Shared) -> Vec<Task> {
    let mut tasks = shared.tasks();
    tasks.extend(Pool::of(shared).running());
    tasks
}

/// Returns all tasks that can be listed, those on the pool with their threads, and the number of the others: unstarted
/// ones in the queues of the workers.
pub(super) fn all(shared: &Shared) -> (Vec<OnThread>, u64) {
    let (mut tasks, queued) = Pool::of(shared).tasks();
    let started = shared.tasks();
    let calls = tasks.iter().filter(|(task, _)| task.header().nature.is_call()).count();
    let counted = started.len() + tasks.len() - calls + queued.len();
    tasks.extend(started.into_iter().chain(queued).map(|task| (task, None)));
    (tasks, unstarted(shared, counted))
}

/// Counts the tasks that have not started; `started` is the number of those that have.
pub(super) fn unstarted(shared: &Shared, started: usize) -> u64 {
    shared.alive().saturating_sub(started as u64)
}

/// Names the tasks that are left, up to twenty, on one line.
pub(super) fn in_one_line(shared: &Shared) -> String {
    let tasks = tasks(shared);
    let names: Vec<String> = tasks.iter().take(20).map(ToString::to_string).collect();
    let more = if tasks.len() > names.len() { ", …" } else { "" };
    format!("{}: {}{more}", count(shared, tasks.len()), names.join(", "))
}

/// Lists all tasks that are left, each on a line with what it waits for, and with its stack.
pub(super) fn in_full(shared: &Shared) -> String {
    let tasks = tasks(shared);
    count(shared, tasks.len()) + &in_lines(&look(shared, tasks))
}

/// Looks at tasks of a runtime, with their stacks.
pub(super) fn look(shared: &Shared, tasks: Vec<Task>) -> Vec<TaskDump> {
    let on_pool = Pool::of(shared).on_threads();
    let threads: HashMap<&Task, Option<i32>> = on_pool.iter().map(|(task, thread)| (task, *thread)).collect();
    let thread = |task: &Task| threads.get(task).copied().flatten();
    // A simulation may fail for many seeds, so it goes without stacks.
    let with_stacks = !shared.is_simulated();
    look_at(tasks.into_iter().map(|task| (task.clone(), thread(&task))).collect(), with_stacks)
}

/// Counts the tasks that are left; `started` is the number of those that have started.
fn count(shared: &Shared, started: usize) -> String {
    let alive = shared.alive().max(started as u64);
    format!("{}, {} of them not started", tasks_in_words(alive), unstarted(shared, started))
}

/// Returns the number of tasks, with the noun.
pub(super) fn tasks_in_words(count: u64) -> String {
    format!("{count} task{}", if count == 1 { "" } else { "s" })
}
