//! What tasks wait for, as lines of a report.

#![forbid(unsafe_code)]

use std::fmt::Write;

use crate::tasks::header::Nature;
use crate::tasks::task::Task;
use crate::waiter::description::{Owner, WaitsFor};

/// Tasks, and what each of them waits for, if it is asleep.
pub(crate) type Waits = Vec<(Task, Option<WaitsFor>)>;

/// Lists tasks, each on a line of its own with what it waits for.
pub(crate) fn in_lines(waits: &Waits) -> String {
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
