//! What is left of a runtime, for reports: its tasks, and what each of them waits for.

#![forbid(unsafe_code)]

use crate::blocking::pool::Pool;
use crate::scheduler::shared::Shared;
use crate::scheduler::waits::describe;
use crate::tasks::task::Task;

/// Returns all tasks that have started and not ended, with those on the blocking pool.
pub(super) fn tasks(shared: &Shared) -> Vec<Task> {
    let mut tasks = shared.tasks();
    tasks.extend(Pool::of(shared).running());
    tasks
}

/// Returns all tasks that can be listed, and the number of the others: unstarted ones in the queues of the workers.
pub(super) fn all(shared: &Shared) -> (Vec<Task>, u64) {
    let (mut tasks, calls) = Pool::of(shared).tasks();
    tasks.extend(shared.tasks());
    let unstarted = unstarted(shared, tasks.len());
    tasks.extend(calls);
    (tasks, unstarted)
}

/// Counts the tasks that have not started; `started` is the number of those that have.
pub(super) fn unstarted(shared: &Shared, started: usize) -> u64 {
    shared.alive().saturating_sub(started as u64)
}

/// Names the tasks that are left, up to twenty, on one line.
pub(super) fn in_one_line(shared: &Shared) -> String {
    let tasks = tasks(shared);
    format!("{}: {}", count(shared, tasks.len()), names(tasks.iter(), 20))
}

/// Names tasks on one line, so many at the most.
pub(super) fn names<'a>(mut tasks: impl Iterator<Item = &'a Task>, most: usize) -> String {
    let names: Vec<_> = tasks.by_ref().take(most).map(ToString::to_string).collect();
    names.join(", ") + if tasks.next().is_some() { ", …" } else { "" }
}

/// Lists all tasks that are left, each on a line with what it waits for, and with its stack.
pub(super) fn in_full(shared: &Shared) -> String {
    let tasks = tasks(shared);
    count(shared, tasks.len()) + &describe(shared, tasks)
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
