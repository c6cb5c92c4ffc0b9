//! What is left of a runtime, for reports: its tasks, and what each of them waits for.

#![forbid(unsafe_code)]

use std::fmt::Write;

use crate::blocking::pool::Pool;
use crate::scheduler::shared::Shared;
use crate::scheduler::virtual_time::Waits;
use crate::tasks::header::Nature;
use crate::tasks::task::Task;
use crate::waiter::description::{Owner, WaitsFor};

/// Returns all tasks that have started and not ended, with those on the blocking pool.
pub(super) fn tasks(shared: &Shared) -> Vec<Task> {
    let mut tasks = shared.tasks();
    tasks.extend(Pool::of(shared).running());
    tasks
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

/// Lists all tasks that are left, each on a line with what it waits for.
pub(super) fn in_full(shared: &Shared) -> String {
    let tasks = tasks(shared);
    count(shared, tasks.len()) + &in_lines(&shared.waits_of(tasks))
}

/// Lists tasks, each on a line of its own with what it waits for.
pub(super) fn in_lines(waits: &Waits) -> String {
    let mut text = String::new();
    for (task, found) in waits {
        let state = match found {
            _ if task.header().nature == Nature::Blocking => "runs on the blocking pool".to_owned(),
            Some(found) => format!("waits for {}", describe(found, waits)),
            None => "computes, or is ready to".to_owned(),
        };
        // Writing to a string does not fail.
        _ = write!(text, "\n  {task} {state}");
    }
    text
}

/// Counts the tasks that are left; `started` is the number of those that have started.
fn count(shared: &Shared, started: usize) -> String {
    let alive = shared.alive().max(started as u64);
    format!("{alive} task(s), {} of them not started", unstarted(shared, started))
}

fn describe(found: &WaitsFor, tasks: &Waits) -> String {
    let mut text = found.name.clone();
    if let Some(descriptor) = found.descriptor {
        _ = write!(text, " (descriptor {descriptor})");
    }
    if let Some(Owner::Number(owner)) = found.owner {
        _ = match tasks.iter().find(|(task, _)| task.id() == owner) {
            Some((owner, _)) => write!(text, " of {owner}"),
            None => write!(text, " of the owner with number {owner}"),
        };
    }
    if !found.arms.is_empty() {
        let arms: Vec<String> = found.arms.iter().map(|arm| describe(arm, tasks)).collect();
        _ = write!(text, " ({})", arms.join(", "));
    }
    text
}
