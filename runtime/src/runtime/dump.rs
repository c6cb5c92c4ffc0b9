//! Dumps: all tasks of a runtime, what each does and waits for, and their stacks.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use crate::base::clock;
use crate::runtime::deadlock::Deadlock;
use crate::runtime::report;
use crate::runtime::wait_graph::WaitGraph;
use crate::scheduler::backtrace::{Backtrace, Symbols};
use crate::scheduler::shared::Shared;
use crate::scheduler::waits::TaskDump;
use crate::scheduler::waits_for::WaitsFor;
use crate::tasks::sleeper::{TaskState, counts_by_state};
use crate::tasks::task::Task;

/// How many tasks of a group are named.
const NAMED: usize = 5;

/// All tasks of a runtime at one moment; see [`Handle::dump`](crate::Handle::dump).
///
/// Its text has all tasks with their stacks, that of [`grouped`](Dump::grouped) each stack once.
///
/// Printing looks up the names of functions. The first look-up in a process reads the debug information of the program, which
/// takes some hundred milliseconds. So print on a plain thread, or in [`unblock`](crate::unblock): a task holds up its worker.
#[derive(Debug)]
pub struct Dump {
    pub(super) time: SystemTime,
    pub(super) tasks: Vec<TaskDump>,
    /// Unstarted tasks that are in no list.
    pub(super) unstarted: u64,
    pub(super) cycles: Vec<Deadlock>,
    symbols: OnceLock<Symbols>,
}

impl Dump {
    pub(super) fn of(shared: &Shared) -> Self {
        let WaitGraph { mut tasks, unstarted, cycles, .. } = WaitGraph::of(shared, true);
        tasks.retain(|task| task.state() != TaskState::Ended);
        Dump { time: clock::wall(), tasks, unstarted, cycles, symbols: OnceLock::new() }
    }

    /// Returns the tasks, in the order of their ids.
    pub fn tasks(&self) -> &[TaskDump] {
        &self.tasks
    }

    /// Returns the number of unstarted tasks that are not among [`tasks`](Dump::tasks).
    ///
    /// Tasks in the queues of the workers are counted, and cannot be listed.
    pub fn unstarted(&self) -> u64 {
        self.unstarted
    }

    /// Returns the tasks that wait for each other, as [`WaitGraph::cycles`] does: each cycle is a likely deadlock.
    pub fn cycles(&self) -> &[Deadlock] {
        &self.cycles
    }

    /// Returns the dump as text in which tasks of one state and one stack stand together, most first.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let parked: Vec<_> = (0..100).map(|_| fibra::spawn(fibra::task::park)).collect();
    /// fibra::yield_now();
    /// let text = fibra::Handle::current().dump().grouped().to_string();
    /// assert!(text.contains("100 tasks suspended, waiting for park"));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn grouped(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| self.write_groups(f))
    }

    /// Returns the stack of a task.
    pub(super) fn stack(&self, task: &TaskDump) -> Option<Backtrace> {
        let resolve = || Symbols::of(self.tasks.iter().filter_map(|task| task.frames.as_ref()));
        let symbols = self.symbols.get_or_init(resolve);
        task.frames.as_ref().map(|frames| symbols.backtrace(frames))
    }

    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = self.tasks.len() as u64;
        let tasks = report::tasks_in_words(listed + self.unstarted);
        write!(f, "process {}, {}: {tasks}", std::process::id(), Utc(self.time))?;
        f.write_str(&counts_by_state(self.tasks.iter().map(TaskDump::state)))?;
        let unstarted = self.tasks.iter().filter(|task| task.state() == TaskState::Unstarted).count();
        writeln!(f, ", {} unstarted", unstarted as u64 + self.unstarted)
    }

    fn write_groups(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        let mut groups: HashMap<_, Vec<&TaskDump>> = HashMap::new();
        for task in &self.tasks {
            let kind = task.waits_for().map(|waits_for| waits_for.kind.as_str());
            let stack = task.frames.as_ref().map(|frames| &frames.addresses);
            // Without stacks, tasks of one place do the same.
            let place = if stack.is_none() { task.task().spawn_location() } else { None };
            groups.entry((task.state(), kind, stack, place)).or_default().push(task);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, tasks)| (usize::MAX - tasks.len(), tasks[0].task().id()));
        for ((state, kind, ..), tasks) in groups {
            write!(f, "\n{} {}", report::tasks_in_words(tasks.len() as u64), state.name())?;
            kind.map_or(Ok(()), |kind| write!(f, ", waiting for {kind}"))?;
            let names = report::names(tasks.iter().map(|task| task.task()), NAMED);
            writeln!(f, ": {names}{}", self.lines_below(tasks[0]))?;
        }
        self.write_cycles(f)
    }

    /// Writes a line for each cycle: the text ends with these lines.
    fn write_cycles(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cycles.iter().try_for_each(|cycle| {
            let names = report::names(cycle.tasks().iter().map(TaskDump::task), usize::MAX);
            writeln!(f, "\n{}: {names}", cycle.headline())
        })
    }

    /// Returns the lines that follow that of a task.
    fn lines_below(&self, task: &TaskDump) -> String {
        self.stack(task).map(|stack| stack.below(4)).unwrap_or_default()
    }
}

impl TaskDump {
    /// Returns the task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Returns what it did.
    pub fn state(&self) -> TaskState {
        self.state
    }

    /// Returns the epoch of its sleep, if it was in one, for profiles.
    #[doc(hidden)]
    pub fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// Returns what it waited for, if it slept.
    pub fn waits_for(&self) -> Option<&WaitsFor> {
        self.waits_for.as_ref()
    }

    /// Returns how old it was, to some ten milliseconds.
    pub fn age(&self) -> Duration {
        self.age
    }

    /// Returns its stack, with the names of its functions, which takes a while; `None` for a task without one.
    pub fn backtrace(&self) -> Option<Backtrace> {
        let frames = self.frames.as_ref()?;
        Some(Symbols::of([frames].into_iter()).backtrace(frames))
    }

    /// Returns the addresses of its stack, innermost first: the first is that of the next instruction, the others are
    /// return addresses. Empty for a task without a stack.
    pub fn addresses(&self) -> impl Iterator<Item = usize> + '_ {
        self.frames.iter().flat_map(|frames| &frames.addresses).map(|(address, _)| *address)
    }
}

impl fmt::Debug for TaskDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskDump")
            .field("task", self.task())
            .field("state", &self.state())
            .field("waits_for", &self.waits_for())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        self.tasks.iter().try_for_each(|task| writeln!(f, "\n{task}{}", self.lines_below(task)))?;
        self.write_cycles(f)
    }
}

impl fmt::Display for TaskDump {
    /// Writes a line, without the stack.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, {:.2} s old", self.task(), self.state().name(), self.age().as_secs_f64())?;
        if let (Some(_), Some(place)) = (self.task().name(), self.task().spawn_location()) {
            write!(f, ", spawned at {place}")?;
        }
        if let Some(container) = self.container {
            write!(f, ", in {} {:#x}", container.kind, container.address)?;
            container.owner.map_or(Ok(()), |owner| write!(f, " of the task with id {owner}"))?;
        }
        let Some(waits_for) = self.waits_for() else {
            let state = self.state();
            let is_unread = matches!(state, TaskState::Suspended | TaskState::Blocking)
                && !self.task().header().nature.is_on_pool();
            return f.write_str(if is_unread { ", waiting for what cannot be read" } else { "" });
        };
        write!(f, ", waiting for {waits_for}")?;
        // A descriptor is named by its number.
        if waits_for.object > 0 && waits_for.descriptor.is_none() {
            write!(f, " at {:#x}", waits_for.object)?;
        }
        write!(f, ", {:.2} s so far", waits_for.waited.as_secs_f64())?;
        waits_for.remaining().map_or(Ok(()), |left| write!(f, ", {:.2} s left", left.as_secs_f64()))
    }
}

/// Writes a moment as in ISO 8601, in universal time.
pub(super) struct Utc(pub(super) SystemTime);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        // Eras of 400 years, of years that begin in March.
        let shifted = days + 719_468;
        let (era, day) = (shifted / 146_097, shifted % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_in_iso_8601() {
        let at = |seconds| Utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).to_string();
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(4_102_444_800), "2100-01-01T00:00:00Z");
    }
}
