//! Dumps as JSON, in the shape of JDK's thread dump.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::process;

use crate::base::clock;
use crate::runtime::deadlock::Deadlock;
use crate::runtime::dump::{Dump, Utc};
use crate::scheduler::waits::TaskDump;
use crate::scheduler::waits_for::{Owner, WaitsFor};
use crate::tasks::sleeper::{ContainerId, TaskState};

/// The container of tasks that are in no scope and no group.
const ROOT: &str = "<root>";

impl Dump {
    /// Returns the dump as JSON in the shape of JDK's thread dump.
    ///
    /// Scopes and groups are thread containers. Beside JDK's fields a thread has `taskState`, `age`, `spawnedAt` and
    /// `waitsFor`; times are in seconds. `cycles` has the ids of tasks that wait for each other, a list for each cycle.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let json = fibra::Handle::current().dump().to_json();
    /// assert!(json.contains(r#""container":"<root>""#));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let mut containers: BTreeMap<Option<ContainerId>, Vec<&TaskDump>> =
            BTreeMap::from([(None, Vec::new())]);
        let mut homes = BTreeMap::new();
        for task in &self.tasks {
            containers.entry(task.container).or_default().push(task);
            homes.insert(task.task().id(), task.container);
        }
        let mut out = String::new();
        // Writing to a string does not fail.
        _ = write!(
            out,
            r#"{{"threadDump":{{"formatVersion":2,"processId":{},"time":"{}","runtimeVersion":"fibra {}""#,
            process::id(),
            Utc(self.time),
            env!("CARGO_PKG_VERSION")
        );
        _ = write!(out, r#","unstarted":{},"threadContainers":["#, self.unstarted);
        for (index, (container, tasks)) in containers.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let owner = container.and_then(|container| container.owner);
            let parent = container.map(|_| owner.and_then(|owner| homes.get(&owner).copied()).flatten());
            _ = write!(
                out,
                r#"{comma}{{"container":{},"parent":{},"owner":{},"threads":["#,
                Name(*container),
                Optional(parent.map(Name)),
                Optional(owner)
            );
            for (index, task) in tasks.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                _ = write_task(&mut out, self, task);
            }
            _ = write!(out, r#"],"threadCount":{}}}"#, tasks.len());
        }
        out.push_str("],");
        let ids = |cycle: &Deadlock| cycle.tasks().iter().map(|task| task.task().id()).collect::<Vec<_>>();
        // A list of numbers is debugged as JSON has it.
        _ = write!(out, r#""cycles":{:?}}}}}"#, self.cycles.iter().map(ids).collect::<Vec<_>>());
        out
    }
}

fn write_task(out: &mut String, dump: &Dump, dumped: &TaskDump) -> fmt::Result {
    let (task, waits_for) = (dumped.task(), dumped.waits_for());
    let state = match (dumped.state(), waits_for) {
        (TaskState::Unstarted, _) => "NEW",
        (TaskState::Suspended, Some(waits_for)) if waits_for.deadline.is_some() => "TIMED_WAITING",
        (TaskState::Suspended, _) => "WAITING",
        (TaskState::Ended, _) => "TERMINATED",
        (TaskState::Running | TaskState::Ready | TaskState::Blocking, _) => "RUNNABLE",
    };
    write!(
        out,
        r#"{{"tid":{},"time":"{}","name":{},"state":"{state}","virtual":true,"taskState":"{}","age":{:.2}"#,
        task.id(),
        Utc(dump.time),
        Text(task.name().unwrap_or("")),
        dumped.state().name(),
        dumped.age().as_secs_f64()
    )?;
    if let Some(place) = task.spawn_location() {
        write!(out, r#","spawnedAt":{}"#, Text(&place.to_string()))?;
    }
    if let Some(waits_for) = waits_for {
        let owner = Optional(waits_for.owner.as_ref().and_then(number));
        write!(out, r#","parkBlocker":{{"object":{},"owner":{owner}}}"#, Text(&object(waits_for)))?;
        write!(out, r#","waitsFor":"#)?;
        write_wait(out, waits_for)?;
    }
    write!(out, r#","stack":["#)?;
    for (index, line) in dump.stack(dumped).map(|stack| stack.lines(false)).iter().flatten().enumerate() {
        write!(out, "{}{}", if index > 0 { "," } else { "" }, Text(line))?;
    }
    out.write_str("]}")
}

fn write_wait(out: &mut String, waits_for: &WaitsFor) -> fmt::Result {
    write!(
        out,
        r#"{{"kind":{},"object":"{:#x}","owner":{},"descriptor":{},"peer":{},"direction":{},"waited":{:.2},"remaining":{}"#,
        Text(&waits_for.kind),
        waits_for.object,
        Optional(waits_for.owner.as_ref().and_then(number)),
        Optional(waits_for.descriptor),
        Optional(waits_for.peer.map(|peer| peer.to_string()).as_deref().map(Text)),
        Optional(waits_for.direction.map(|direction| Text(direction.name()))),
        waits_for.waited.as_secs_f64(),
        Optional(waits_for.deadline.map(|at| at.saturating_duration_since(clock::now()).as_secs_f64())),
    )?;
    write!(out, r#","arms":["#)?;
    for (index, arm) in waits_for.arms.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        write_wait(out, arm)?;
    }
    out.write_str("]}")
}

/// Names the object of a wait.
fn object(waits_for: &WaitsFor) -> String {
    match waits_for.object {
        0 => waits_for.kind.clone(),
        object => format!("{} at {object:#x}", waits_for.kind),
    }
}

fn number(owner: &Owner) -> Option<u64> {
    match owner {
        Owner::Task(task) => Some(task.id()),
        Owner::Thread { number, .. } => Some(*number),
        Owner::Gone(number) => *number,
    }
}

/// The name of a container, as a JSON string.
struct Name(Option<ContainerId>);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Text(ROOT).fmt(f),
            Some(container) => write!(f, "\"{}@{:#x}\"", container.kind, container.address),
        }
    }
}

/// A value, or `null`.
struct Optional<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Optional<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("null"),
        }
    }
}

/// A JSON string.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                control if (control as u32) < 0x20 => write!(f, "\\u{:04x}", control as u32)?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(Text("a \"b\" \\ \n é").to_string(), r#""a \"b\" \\ \u000a é""#);
    }
}
