//! What tasks do, as lines of a report.

#![forbid(unsafe_code)]

use std::time::Duration;

use crate::base::sys;
use crate::base::unwinder;
use crate::scheduler::backtrace::Symbols;
use crate::scheduler::shared::Shared;
use crate::scheduler::waits_for::{Owners, WaitsFor};
use crate::tasks::header::Nature;
use crate::tasks::sleeper::{ContainerId, Frames, Reader, Sleep, TaskState};
use crate::tasks::task::Task;

/// A task in a [`Dump`](crate::task::Dump), as a look has found it.
#[derive(Clone)]
pub struct TaskDump {
    pub(crate) task: Task,
    pub(crate) state: TaskState,
    /// The epoch of its sleep, if it is in one.
    pub(crate) epoch: Option<u64>,
    pub(crate) waits_for: Option<WaitsFor>,
    pub(crate) frames: Option<Frames>,
    pub(crate) age: Duration,
    pub(crate) container: Option<ContainerId>,
}

/// Looks at these tasks. With stacks, it samples those that run.
pub(crate) fn look_at(tasks: Vec<Task>, with_stacks: bool) -> Vec<TaskDump> {
    let refs: Vec<_> = tasks.iter().map(Task::as_ref).collect();
    let looks = Reader::new(with_stacks).look_at_all(&refs);
    let owners = Owners::new();
    let seen = |(task, (state, sleep)): (Task, (TaskState, Option<Sleep>))| {
        let epoch = sleep.as_ref().map(|sleep| sleep.word.epoch);
        let waits_for = sleep.as_ref().map(|sleep| owners.resolve(&task, sleep));
        let frames = match sleep {
            Some(sleep) => sleep.frames,
            None if with_stacks => sample(&task, owners.thread_of(&task, state)),
            None => None,
        };
        let container = task.as_ref().container();
        TaskDump { state, epoch, waits_for, frames, age: task.header().age(), container, task }
    };
    tasks.into_iter().zip(looks).map(seen).collect()
}

/// Lists tasks of a runtime as [`in_lines`] does.
pub(crate) fn describe(shared: &Shared, tasks: Vec<Task>) -> String {
    // A simulation may fail for many seeds, so it goes without stacks.
    in_lines(&look_at(tasks, !shared.is_simulated()))
}

/// Walks the stack of a task that runs on that thread, unless it has slept or ended meanwhile.
fn sample(task: &Task, thread: Option<i32>) -> Option<Frames> {
    let (unwinder, thread) = (unwinder::installed()?, thread?);
    if sys::thread_id() == Some(thread) {
        return None;
    }
    let header = task.header();
    let look = || (header.waiter.word.why(), header.coroutine.suspended(), header.join.is_done());
    let seen = look();
    let mut addresses = Vec::new();
    let is_complete = unwinder.sample(thread, &mut addresses);
    let is_same = look() == seen && !addresses.is_empty();
    let addresses = addresses.into_iter().enumerate().map(|(index, address)| (address, index > 0));
    is_same.then(|| Frames { addresses: addresses.collect(), is_complete })
}

/// Lists tasks, each on a line of its own with what it waits for, and its stack on the lines after it.
pub(crate) fn in_lines(tasks: &[TaskDump]) -> String {
    let symbols = Symbols::of(tasks.iter().filter_map(|task| task.frames.as_ref()));
    let mut text = String::new();
    for TaskDump { task, waits_for, frames, .. } in tasks {
        let state = match waits_for {
            _ if task.header().nature == Nature::Blocking => "runs on the blocking pool".to_owned(),
            Some(waits_for) => format!("waits for {waits_for}"),
            None => "computes, or is ready to".to_owned(),
        };
        let stack = frames.as_ref().map(|frames| symbols.backtrace(frames).below(6)).unwrap_or_default();
        text += &format!("\n  {task} {state}{stack}");
    }
    text
}
