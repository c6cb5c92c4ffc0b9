//! Dumps as JSON, in the shape of JDK's thread dump.
//!
//! Maps, lists, numbers and truths are debugged by std as JSON has them. Strings and what is absent are not.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display, Write};
use std::process;
use std::time::Duration;

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
    /// assert!(json.contains(r#""container": "<root>""#));
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
        let homes = &homes;
        let containers = list(containers, |(container, tasks)| {
            fmt::from_fn(move |f| {
                let owner = container.and_then(|container| container.owner);
                let home = owner.and_then(|owner| homes.get(&owner).copied()).flatten();
                f.debug_map()
                    .entry(&"container", &name(container))
                    .entry(&"parent", &optional(container.map(|_| name(home))))
                    .entry(&"owner", &optional(owner))
                    .entry(&"threads", &list(&tasks, |task| thread(self, task)))
                    .entry(&"threadCount", &tasks.len())
                    .finish()
            })
        });
        let dump = fmt::from_fn(|f| {
            f.debug_map()
                .entry(&"formatVersion", &2)
                .entry(&"processId", &process::id())
                .entry(&"time", &text(Utc(self.time)))
                .entry(&"runtimeVersion", &text(concat!("fibra ", env!("CARGO_PKG_VERSION"))))
                .entry(&"unstarted", &self.unstarted)
                .entry(&"threadContainers", &containers)
                .entry(&"cycles", &list(&self.cycles, |cycle| list(cycle.tasks(), |task| task.task().id())))
                .finish()
        });
        format!("{:?}", BTreeMap::from([("threadDump", dump)]))
    }
}

fn thread<'a>(dump: &'a Dump, dumped: &'a TaskDump) -> impl Debug + use<'a> {
    let (task, waits_for) = (dumped.task(), dumped.waits_for());
    let state = match (dumped.state(), waits_for) {
        (TaskState::Unstarted, _) => "NEW",
        (TaskState::Suspended, Some(waits_for)) if waits_for.deadline.is_some() => "TIMED_WAITING",
        (TaskState::Suspended, _) => "WAITING",
        (TaskState::Ended, _) => "TERMINATED",
        (TaskState::Running | TaskState::Ready | TaskState::Blocking, _) => "RUNNABLE",
    };
    fmt::from_fn(move |f| {
        let mut map = f.debug_map();
        map.entry(&"tid", &task.id())
            .entry(&"time", &text(Utc(dump.time)))
            .entry(&"name", &text(task.name().unwrap_or("")))
            .entry(&"state", &text(state))
            .entry(&"virtual", &true)
            .entry(&"taskState", &text(dumped.state().name()))
            .entry(&"age", &seconds(dumped.age()));
        if let Some(place) = task.spawn_location() {
            map.entry(&"spawnedAt", &text(place));
        }
        if let Some(waits_for) = waits_for {
            map.entry(&"parkBlocker", &blocker(waits_for)).entry(&"waitsFor", &Wait(waits_for));
        }
        let stack = dump.stack(dumped).map(|stack| stack.lines(false)).unwrap_or_default();
        map.entry(&"stack", &list(&stack, text)).finish()
    })
}

/// Names the object of a wait.
fn blocker(waits_for: &WaitsFor) -> impl Debug {
    let (kind, object, owner) = (&waits_for.kind, waits_for.object, owner(waits_for));
    fmt::from_fn(move |f| {
        let object = if object == 0 { kind.clone() } else { format!("{kind} at {object:#x}") };
        f.debug_map().entry(&"object", &text(object)).entry(&"owner", &owner).finish()
    })
}

struct Wait<'a>(&'a WaitsFor);

impl Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wait(waits_for) = self;
        f.debug_map()
            .entry(&"kind", &text(&waits_for.kind))
            .entry(&"object", &text(format_args!("{:#x}", waits_for.object)))
            .entry(&"owner", &owner(waits_for))
            .entry(&"descriptor", &optional(waits_for.descriptor))
            .entry(&"peer", &optional(waits_for.peer.map(text)))
            .entry(&"direction", &optional(waits_for.direction.map(|direction| text(direction.name()))))
            .entry(&"waited", &seconds(waits_for.waited))
            .entry(&"remaining", &optional(waits_for.remaining().map(|span| span.as_secs_f64())))
            .entry(&"arms", &list(&waits_for.arms, Wait))
            .finish()
    }
}

/// The number of the owner, if it is known.
fn owner(waits_for: &WaitsFor) -> impl Debug + use<> {
    optional(match waits_for.owner.as_ref() {
        Some(Owner::Task(task)) => Some(task.id()),
        Some(Owner::Thread { number, .. }) => Some(*number),
        Some(Owner::Gone(number)) => *number,
        None => None,
    })
}

fn name(container: Option<ContainerId>) -> impl Debug {
    text(
        container.map_or(ROOT.to_owned(), |container| format!("{}@{:#x}", container.kind, container.address)),
    )
}

fn list<T, J: Debug>(values: impl IntoIterator<Item = T>, json: impl FnMut(T) -> J) -> Vec<J> {
    values.into_iter().map(json).collect()
}

fn seconds(span: Duration) -> impl Debug {
    fmt::from_fn(move |f| write!(f, "{:.2}", span.as_secs_f64()))
}

/// A value, or `null`.
fn optional(value: Option<impl Debug>) -> impl Debug {
    fmt::from_fn(move |f| match &value {
        Some(value) => value.fmt(f),
        None => f.write_str("null"),
    })
}

/// A JSON string.
fn text(raw: impl Display) -> impl Debug {
    fmt::from_fn(move |f| {
        f.write_char('"')?;
        for character in raw.to_string().chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                control if (control as u32) < 0x20 => write!(f, "\\u{:04x}", control as u32)?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(format!("{:?}", text("a \"b\" \\ \n é")), r#""a \"b\" \\ \u000a é""#);
    }
}
