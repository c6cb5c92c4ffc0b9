//! A profile: where tasks have spent their time.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use fibra_runtime::stacks::Symbol;
use fibra_runtime::task::TaskState;

use crate::interner::Interner;

/// Where tasks have spent their time, by their stacks; see [`profile`](crate::profile()).
#[derive(Debug)]
pub struct Profile {
    /// When it was begun.
    pub(crate) begin: SystemTime,
    pub(crate) duration: Duration,
    /// The time between two looks, at the least.
    pub(crate) period: Duration,
    /// The names of tasks, or the places where those without a name were spawned.
    pub(crate) tasks: Interner<String>,
    /// What tasks waited for; the first one stands for nothing.
    pub(crate) waits: Interner<String>,
    /// The addresses of stacks, innermost first; the first stack is empty.
    pub(crate) stacks: Interner<Vec<usize>>,
    pub(crate) functions: HashMap<usize, Vec<Symbol>>,
    /// The time that tasks have spent at each place.
    pub(crate) samples: Vec<(Place, Duration)>,
}

/// Where a task was: indices into the lists of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place {
    pub(crate) task: usize,
    pub(crate) state: TaskState,
    pub(crate) wait: usize,
    pub(crate) stack: usize,
}

impl Profile {
    /// Returns the time of all tasks together that were in that state.
    ///
    /// It is about the number of these tasks times the duration of the profile.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use fibra::task::TaskState;
    /// use std::time::Duration;
    ///
    /// let runtime = fibra::Runtime::builder().workers(1).build()?;
    /// runtime.handle().run(|| fibra::spawn(fibra::task::park));
    /// let profile = fibra_insight::profile(&runtime.handle(), Duration::from_millis(50));
    /// assert!(profile.time(TaskState::Suspended) >= Duration::from_millis(50));
    /// assert_eq!(profile.time(TaskState::Blocking), Duration::ZERO);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn time(&self, state: TaskState) -> Duration {
        self.samples.iter().filter(|(place, _)| place.state == state).map(|(_, time)| time).sum()
    }

    /// Returns the profile as folded stacks, which the tools for flame graphs read: a line for each stack, with its time in
    /// microseconds.
    ///
    /// A line begins with the name of the task, or with the place where it was spawned. It ends with its state, and what it
    /// waited for.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::time::Duration;
    ///
    /// let runtime = fibra::Runtime::builder().workers(1).build()?;
    /// let parked = fibra::task::Builder::new().name("parked");
    /// runtime.handle().run(|| parked.spawn(fibra::task::park));
    /// let folded = fibra_insight::profile(&runtime.handle(), Duration::from_millis(50)).to_folded();
    /// let line = folded.lines().find(|line| line.contains("[suspended: park] ")).unwrap();
    /// assert!(line.starts_with("parked;"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn to_folded(&self) -> String {
        let mut lines: BTreeMap<String, Duration> = BTreeMap::new();
        for (place, time) in &self.samples {
            let mut line = folded(self.tasks.value(place.task));
            for function in self.functions(place).iter().rev() {
                line += ";";
                line += &folded(&function.function);
            }
            let wait = self.waits.value(place.wait);
            let colon = if wait.is_empty() { "" } else { ": " };
            // Writing to a string does not fail, here and below.
            _ = write!(line, ";[{}{colon}{wait}]", place.state.name());
            *lines.entry(line).or_default() += *time;
        }
        lines.iter().fold(String::new(), |mut text, (line, time)| {
            _ = writeln!(text, "{line} {}", time.as_micros());
            text
        })
    }

    /// Returns the functions of a sample that are of use, innermost first.
    ///
    /// What lies around the task's closure is left out. A sleep is shown by its public call, without what is inside.
    pub(crate) fn functions(&self, place: &Place) -> Vec<&Symbol> {
        let stack = self.stacks.value(place.stack).iter();
        let all: Vec<_> = stack.filter_map(|address| self.functions.get(address)).flatten().collect();
        let is_users = |symbol: &&Symbol| !symbol.is_library;
        let (Some(first), Some(last)) = (all.iter().position(is_users), all.iter().rposition(is_users))
        else {
            return all;
        };
        let first = if self.waits.value(place.wait).is_empty() { 0 } else { first.saturating_sub(1) };
        all[first..=last].to_vec()
    }
}

/// Replaces what separates frames and lines.
fn folded(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}
