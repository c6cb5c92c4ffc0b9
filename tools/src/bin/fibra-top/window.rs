//! What has changed between two samples, and tasks in order.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashSet, VecDeque};

use clap::ValueEnum;

use crate::sample::{Sample, Task};

/// The order of the tasks: the most comes first.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Default, Debug)]
pub(crate) enum Sort {
    #[default]
    /// By how often the samples found the task running.
    Ran,
    /// By age.
    Age,
    /// By how long the task has been waiting.
    Wait,
}

/// Of how many samples the running tasks are remembered.
const REMEMBERED: usize = 10;

/// The last two samples, and which tasks ran at the last ten.
#[derive(Default)]
pub(crate) struct Window {
    before: Sample,
    pub(crate) last: Sample,
    running: VecDeque<HashSet<u64>>,
}

impl Window {
    /// Adds a sample.
    pub(crate) fn add(&mut self, sample: Sample) {
        let running = sample.tasks.iter().filter(|task| task.state == "running").map(|task| task.id);
        self.running.push_front(running.collect());
        self.running.truncate(REMEMBERED);
        self.before = std::mem::replace(&mut self.last, sample);
    }

    /// Returns the numbers of each worker: the part of the time in which it was busy; its runs, parks and stolen tasks a second;
    /// how many tasks are queued.
    pub(crate) fn workers(&self) -> Vec<[f64; 5]> {
        let up = |sample: &Sample| sample.number("fibra_uptime_seconds");
        let span = (up(&self.last) - up(&self.before)).max(1e-3);
        let row = |worker| {
            let both = |name| [&self.last, &self.before].map(|sample| sample.of_worker(name, worker));
            let grown = |name| (both(name)[0] - both(name)[1]).max(0.0);
            let rate = |name| grown(name) / span;
            let (busy, idle) = (grown("busy_seconds_total"), grown("idle_seconds_total"));
            let queued = self.last.of_worker("ready", worker) + self.last.of_worker("queued", worker);
            let [runs, parks, stolen] = ["runs_total", "parks_total", "stolen_total"].map(rate);
            [busy / (busy + idle).max(1e-9), runs, parks, stolen, queued]
        };
        (0..self.last.workers()).map(row).collect()
    }

    /// Returns the part of the remembered samples at which a task ran.
    pub(crate) fn ran(&self, task: &Task) -> f64 {
        let found = self.running.iter().filter(|running| running.contains(&task.id)).count();
        found as f64 / self.running.len().max(1) as f64
    }

    /// Returns the tasks whose names have that text in them, in order.
    pub(crate) fn tasks(&self, sort: Sort, filter: &str) -> Vec<&Task> {
        let key = |task: &Task| match sort {
            Sort::Ran => self.ran(task),
            Sort::Age => task.age,
            Sort::Wait => task.wait.as_ref().map_or(-1.0, |wait| wait.waited),
        };
        let mut tasks: Vec<_> = self.last.tasks.iter().filter(|task| task.name.contains(filter)).collect();
        tasks.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.id.cmp(&b.id)));
        tasks
    }

    /// Counts the waits of each kind, most first.
    pub(crate) fn kinds(&self) -> Vec<(usize, &str)> {
        let mut counts = BTreeMap::new();
        let waits = self.last.tasks.iter().filter_map(|task| task.wait.as_ref());
        waits.for_each(|wait| *counts.entry(wait.kind.as_str()).or_insert(0) += 1);
        let mut kinds: Vec<_> = counts.into_iter().map(|(kind, count)| (count, kind)).collect();
        kinds.sort_by_key(|(count, _)| usize::MAX - count);
        kinds
    }

    /// Returns the objects that have an owner or several waiters: how many wait, the object and its owner. Most waiters first.
    pub(crate) fn objects(&self) -> Vec<(usize, String, Option<u64>)> {
        let mut objects = BTreeMap::new();
        let waits = self.last.tasks.iter().filter_map(|task| task.wait.as_ref());
        for wait in waits.filter(|wait| wait.object != "0x0") {
            objects.entry(format!("{} at {}", wait.kind, wait.object)).or_insert((0, wait.owner)).0 += 1;
        }
        let rows = objects.into_iter().map(|(place, (waiters, owner))| (waiters, place, owner));
        let mut rows: Vec<_> = rows.filter(|(waiters, _, owner)| owner.is_some() || *waiters > 1).collect();
        rows.sort_by_key(|(waiters, ..)| usize::MAX - waiters);
        rows
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sample::Wait;

    pub(crate) fn task(
        id: u64,
        state: &str,
        age: f64,
        waits: Option<(&str, &str, Option<u64>, f64)>,
    ) -> Task {
        let wait = waits.map(|(kind, object, owner, waited)| Wait {
            text: owner.map_or(kind.to_owned(), |owner| format!("{kind} of {owner}")),
            kind: kind.to_owned(),
            object: object.to_owned(),
            owner,
            waited,
        });
        Task { id, name: format!("job-{id}"), state: state.to_owned(), age, wait }
    }

    /// Returns a window of two seconds between two samples of two workers and five tasks.
    pub(crate) fn window() -> Window {
        let sample = |second: f64, running: u64| {
            let mut sample = Sample { process: 4711, ..Sample::default() };
            let mut set = |name: &str, value| _ = sample.numbers.insert(name.to_owned(), value);
            set("fibra_uptime_seconds", 10.0 + second);
            for (state, count) in [("running", 1.0), ("suspended", 3.0), ("ready", 1.0)] {
                set(&format!("fibra_tasks{{state=\"{state}\"}}"), count);
            }
            for (worker, busy) in [(0, 0.75), (1, 0.1)] {
                let mut set =
                    |name, value| set(&format!("fibra_worker_{name}{{worker=\"{worker}\"}}"), value);
                set("busy_seconds_total", 5.0 + second * busy);
                set("idle_seconds_total", 5.0 + second * (1.0 - busy));
                set("runs_total", 1000.0 + second * 50.0);
                set("parks_total", second * 3.0);
                set("stolen_total", 7.0);
                set("ready", worker as f64);
            }
            let state = |id| if id == running { "running" } else { "ready" };
            let mutex = |owner| Some(("mutex", "0x10", Some(owner), 1.5));
            sample.tasks = vec![
                task(1, state(1), 12.0, None),
                task(2, state(2), 3.0, None),
                task(3, "suspended", 8.0, mutex(2)),
                task(4, "suspended", 9.0, mutex(2)),
                task(5, "suspended", 10.0, Some(("sleep", "0x0", None, 4.0))),
            ];
            sample
        };
        let mut window = Window::default();
        window.add(sample(0.0, 1));
        window.add(sample(2.0, 2));
        window.add(sample(4.0, 2));
        window
    }

    #[test]
    fn workers_are_told_by_the_difference_of_two_samples() {
        let workers = window().workers();
        assert_eq!(workers.len(), 2);
        assert!((workers[0][0] - 0.75).abs() < 1e-9 && (workers[1][0] - 0.1).abs() < 1e-9, "{workers:?}");
        assert_eq!((&workers[0][1..], workers[1][4]), (&[50.0, 3.0, 0.0, 0.0][..], 1.0));
    }

    #[test]
    fn tasks_are_sorted_and_filtered() {
        let window = window();
        let ids = |sort, filter| window.tasks(sort, filter).iter().map(|task| task.id).collect::<Vec<_>>();
        assert_eq!(ids(Sort::Ran, ""), [2, 1, 3, 4, 5]);
        assert_eq!(ids(Sort::Age, ""), [1, 5, 4, 3, 2]);
        assert_eq!(ids(Sort::Wait, ""), [5, 3, 4, 1, 2]);
        assert_eq!((ids(Sort::Age, "job-4"), ids(Sort::Age, "other")), (vec![4], vec![]));
        assert!((window.ran(&window.last.tasks[1]) - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn waits_are_counted_by_kind_and_by_object() {
        let window = window();
        assert_eq!(window.kinds(), [(2, "mutex"), (1, "sleep")]);
        assert_eq!(window.objects(), [(2, "mutex at 0x10".to_owned(), Some(2))]);
    }
}
