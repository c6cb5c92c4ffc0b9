//! The graph of waits: which tasks wait for which, and the cycles that nothing inside the runtime can end.
//!
//! An edge counts if the task is in one sleep from before the look at its object until after the search, so the
//! edges of a cycle held all at one moment.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use crate::runtime::deadlock::Deadlock;
use crate::runtime::report;
use crate::runtime::wait_cycles::{self, Node};
use crate::scheduler::shared::Shared;
use crate::scheduler::waits::{TaskDump, look_at};
use crate::scheduler::waits_for::{Owner, WaitsFor};
use crate::sleep::caller;
use crate::tasks::sleeper::{ContainerId, TaskState};
use crate::tasks::task::{self, Task};
use crate::waiter::description::EndedBy;
use crate::waiter::word::Snapshot;

/// Which tasks of a runtime wait for which; see [`Handle::wait_graph`](crate::Handle::wait_graph).
///
/// A task waits for the owner of a mutex or of a read-write lock, for the initializer of a `Once`, an `OnceCell` or a
/// `LazyLock`, for the task that it joins, for the children of its scope, for any task of a group, or for any arm of
/// a `select!`. A wait with a deadline is no part of a cycle, nor one that an event, a channel, the system or a thread
/// may end, nor a `select!` with one such arm.
///
/// # Limits
/// Some cycles are not found: over the readers of a read-write lock, the holders of permits of a semaphore, the
/// closures of a `race`, plain threads, the blocking pool and tasks of another runtime, and over a task that
/// `Condvar` has woken and that waits for the mutex since.
///
/// Some are false: the owner of a lock is the task that has taken it, also where it has passed the guard on or
/// leaked it, and a task outside of a cycle may cancel one in it. So a cycle is a likely deadlock.
#[derive(Debug)]
pub struct WaitGraph {
    pub(super) tasks: Vec<TaskDump>,
    /// Unstarted tasks that are in no list.
    pub(super) unstarted: u64,
    nodes: Vec<Node>,
    pub(super) cycles: Vec<Deadlock>,
    all_asleep: bool,
}

impl WaitGraph {
    pub(super) fn of(shared: &Shared, with_stacks: bool) -> Self {
        let (mut tasks, unstarted) = report::all(shared);
        tasks.sort_by_key(Task::id);
        let listed = tasks.clone();
        let words = || listed.iter().map(|task| task.header().waiter.word.why()).collect::<Vec<_>>();
        let before = words();
        let tasks = look_at(tasks, with_stacks);
        let places = Places::of(&tasks, unstarted == 0);
        let nodes: Vec<_> = tasks.iter().zip(&before).map(|(seen, word)| places.node(seen, *word)).collect();
        let cycles = wait_cycles::cycles(&nodes);
        let running = task::try_current();
        let sleeps =
            |seen: &TaskDump, word| Some(&seen.task) == running.as_ref() || sleeps_for_tasks(seen, word);
        let all_asleep = unstarted == 0
            && !shared.virtual_time.is_held()
            && tasks.iter().zip(&before).all(|(seen, word)| sleeps(seen, *word))
            && caller::are_asleep(shared, &listed);
        let after = words();
        let is_same = |cycle: &Vec<usize>| cycle.iter().all(|index| before[*index] == after[*index]);
        let dump = |index: usize| tasks[index].clone();
        let deadlock = |cycle: Vec<usize>| Deadlock::of(cycle.into_iter().map(dump).collect());
        let cycles = cycles.into_iter().filter(is_same).map(deadlock).collect();
        WaitGraph { cycles, all_asleep: all_asleep && before == after, nodes, tasks, unstarted }
    }

    /// Returns the cycles: tasks that wait for each other, which nothing inside the runtime can end but a cancel.
    ///
    /// A task that waits for a cycle without being part of it is not listed.
    pub fn cycles(&self) -> &[Deadlock] {
        &self.cycles
    }

    /// Returns true if all tasks but the caller sleep, and no timer, no descriptor and no call on the blocking pool is to
    /// wake one of them.
    ///
    /// Then they sleep for ever, unless the caller, a plain thread or a signal wakes one.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::time::Duration;
    /// let runtime = fibra::Runtime::builder().workers(1).build()?;
    /// runtime.run(|| {
    ///     let all_asleep = || fibra::Handle::current().wait_graph().all_asleep();
    ///     let parked = fibra::spawn(fibra::task::park);
    ///     assert!(!all_asleep(), "it is yet to run");
    ///     fibra::yield_now();
    ///     assert!(all_asleep());
    ///     let sleeper = fibra::spawn(|| fibra::sleep(Duration::from_secs(3600)));
    ///     fibra::yield_now();
    ///     assert!(!all_asleep());
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn all_asleep(&self) -> bool {
        self.all_asleep
    }

    /// Returns the graph in the language of Graphviz: the tasks that wait for tasks, and those that they wait for.
    ///
    /// Cycles are red. Dashed edges are of waits that something else may end.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let dot = fibra::Handle::current().wait_graph().to_dot();
    /// assert_eq!(dot, "digraph waits {\n}\n");
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn to_dot(&self) -> String {
        let cycles = self.cycles.iter().enumerate();
        let ids = cycles
            .flat_map(|(number, cycle)| cycle.tasks().iter().map(move |task| (task.task().id(), number)));
        let cycle_of: HashMap<u64, usize> = ids.collect();
        let cycle = |index: usize| cycle_of.get(&self.tasks[index].task.id());
        let waiters = self.nodes.iter().enumerate().filter(|(_, node)| !node.waits_for.is_empty());
        let ends = waiters.flat_map(|(index, node)| node.waits_for.iter().copied().chain([index]));
        let mut dot = String::from("digraph waits {\n");
        for index in ends.collect::<BTreeSet<_>>() {
            let seen = &self.tasks[index];
            let label = format!("{}\n{}", seen.task, seen.state.name());
            let red = if cycle(index).is_some() { ", color=red" } else { "" };
            // Writing to a string does not fail.
            _ = writeln!(dot, "  t{} [label={label:?}{red}];", seen.task.id());
        }
        for (seen, (index, node)) in self.tasks.iter().zip(self.nodes.iter().enumerate()) {
            let label = seen.waits_for.as_ref().map_or("", |waits_for| &waits_for.kind);
            let dashed = if node.needed == 0 { ", style=dashed" } else { "" };
            for other in &node.waits_for {
                let is_red = cycle(index).is_some() && cycle(index) == cycle(*other);
                let red = if is_red { ", color=red" } else { "" };
                let (from, to) = (seen.task.id(), self.tasks[*other].task.id());
                _ = writeln!(dot, "  t{from} -> t{to} [label={label:?}{dashed}{red}];");
            }
        }
        dot + "}\n"
    }
}

/// Returns true for a task that has been in one sleep since the look that found that word, which only tasks and threads may
/// end.
fn sleeps_for_tasks(seen: &TaskDump, word: Snapshot) -> bool {
    fn is_ended_by_tasks(waits_for: &WaitsFor) -> bool {
        waits_for.ended_by == EndedBy::Task && waits_for.arms.iter().all(is_ended_by_tasks)
    }
    word.is_asleep()
        && seen.epoch == Some(word.epoch)
        && seen.state == TaskState::Suspended
        && !seen.task.header().is_timed()
        && seen.waits_for.as_ref().is_some_and(is_ended_by_tasks)
}

/// Where tasks are among those that were looked at.
struct Places {
    by_id: HashMap<u64, usize>,
    /// The sets of tasks by their addresses, with their members.
    sets: BTreeMap<usize, (ContainerId, Vec<usize>)>,
    /// No member of a set is missing.
    is_complete: bool,
}

impl Places {
    fn of(tasks: &[TaskDump], is_complete: bool) -> Self {
        let by_id = tasks.iter().enumerate().map(|(index, seen)| (seen.task.id(), index)).collect();
        let mut sets = BTreeMap::new();
        for (index, seen) in tasks.iter().enumerate() {
            if let Some(set) = seen.container {
                sets.entry(set.address).or_insert_with(|| (set, Vec::new())).1.push(index);
            }
        }
        Places { by_id, sets, is_complete }
    }

    fn node(&self, seen: &TaskDump, word: Snapshot) -> Node {
        let Some(waits_for) = &seen.waits_for else { return Node::default() };
        let mut node = self.edges(waits_for);
        if !sleeps_for_tasks(seen, word) {
            node.needed = 0;
        }
        node
    }

    fn edges(&self, waits_for: &WaitsFor) -> Node {
        let owner = |waits_for: &WaitsFor| match &waits_for.owner {
            Some(Owner::Task(owner)) => self.by_id.get(&owner.id()).copied(),
            _ => None,
        };
        let object = waits_for.object;
        let set = self.sets.range(..=object).next_back().filter(|(at, (set, _))| object - **at < set.size);
        let mut node = match set {
            _ if waits_for.owner.is_some() => return Node::any_of(owner(waits_for).into_iter().collect()),
            Some((_, (set, members))) if set.kind == "scope" => return Node::all_of(members.clone()),
            Some((_, (_, members))) => Node::any_of(members.clone()),
            None => Node::any_of(waits_for.arms.iter().filter_map(owner).collect()),
        };
        let is_known = match set {
            Some(_) => self.is_complete,
            None => waits_for.arms.iter().all(|arm| owner(arm).is_some()),
        };
        if !is_known {
            node.needed = 0;
        }
        node
    }
}
