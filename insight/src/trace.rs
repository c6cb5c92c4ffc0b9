//! What a flight recorder has recorded.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fmt::Write;
use std::panic::Location;
use std::path::Path;
use std::time::Duration;

use fibra_runtime::Task;
use fibra_runtime::trace::{Event, Recorded};

/// What the workers of a runtime have done lately.
#[derive(Clone, Debug)]
pub struct Trace {
    events: Vec<TraceEvent>,
    stalls: Vec<StallEvent>,
    lost: u64,
    /// When it was taken.
    pub(crate) end: Duration,
    /// The threads of the workers.
    pub(crate) threads: Vec<Option<i32>>,
    labels: HashMap<u64, Label>,
}

/// An event of a [`Trace`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TraceEvent {
    /// When, since the recorder was started. Runs begin when the run before them ends, unless the worker has slept or searched
    /// in between.
    pub at: Duration,
    /// The index of the worker.
    pub worker: usize,
    /// The id of the task that ran then. `None` if there was none, or it began to run before the trace.
    pub task: Option<u64>,
    /// What has happened.
    pub event: Event,
}

/// A task that has held its worker for longer than the runtime's `stall_limit`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StallEvent {
    /// When the watch has found it, since the recorder was started.
    pub at: Duration,
    /// The index of the worker.
    pub worker: usize,
    /// The id of the task.
    pub task: u64,
    /// For how long the task had held the worker by then, at the least.
    pub held: Duration,
}

/// What is known of a task beside its id.
#[derive(Clone, Default, Debug)]
struct Label {
    name: Option<String>,
    spawned_at: Option<&'static Location<'static>>,
}

impl Trace {
    pub(crate) fn new(
        workers: Vec<Recorded>,
        end: Duration,
        stalls: Vec<StallEvent>,
        alive: &[Task],
    ) -> Self {
        let threads = workers.iter().map(|worker| worker.thread).collect();
        let lost = workers.iter().map(|worker| worker.lost).sum();
        let mut events: Vec<_> = workers.into_iter().enumerate().flat_map(of_worker).collect();
        // Stable: the order of each worker stays.
        events.sort_by_key(|event| event.at);
        // Another processor may have timed the last event slightly later.
        let end = events.last().map_or(end, |event| event.at.max(end));
        let mut labels: HashMap<_, Label> = HashMap::new();
        let spawns = events.iter().zip(events.iter().skip(1));
        for (spawn, place) in spawns {
            // A worker's first event may be a place whose spawn is lost.
            if let (Event::Spawns(task), Event::SpawnedAt(at)) = (spawn.event, place.event)
                && spawn.worker == place.worker
            {
                labels.entry(task).or_default().spawned_at = Some(at);
            }
        }
        for task in alive {
            let name = task.name().map(str::to_owned);
            labels.insert(task.id(), Label { name, spawned_at: task.spawn_location() });
        }
        Trace { events, stalls, lost, end, threads, labels }
    }

    /// Returns the events of all workers, in the order of their times.
    pub fn events(&self) -> &[TraceEvent] {
        &self.events
    }

    /// Returns the last hundred stalls.
    pub fn stalls(&self) -> &[StallEvent] {
        &self.stalls
    }

    /// Returns how many earlier events of the recording are not in the trace, since the rings had no room for them.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns what a task is called in the trace.
    pub(crate) fn label(&self, task: u64) -> String {
        let label = self.labels.get(&task);
        let name = label.and_then(|label| label.name.as_deref());
        let mut text = format!("{} #{task}", name.unwrap_or("task"));
        if let (None, Some(place)) = (name, label.and_then(|label| label.spawned_at)) {
            let file = Path::new(place.file()).file_name().unwrap_or_default();
            // Writing to a string does not fail.
            _ = write!(text, " ({}:{})", file.display(), place.line());
        }
        text
    }
}

/// Returns the events of a worker with the task that ran at each.
fn of_worker((worker, recorded): (usize, Recorded)) -> impl Iterator<Item = TraceEvent> {
    let (mut running, mut last) = (None, Duration::ZERO);
    recorded.events.into_iter().map(move |(at, event)| {
        if let Event::Runs(task) = event {
            running = Some(task);
        }
        let task = running;
        if let Event::Yields | Event::Sleeps(_) | Event::Ends = event {
            running = None;
        }
        // Its thread may have moved to a processor with a slightly earlier counter.
        last = at.max(last);
        TraceEvent { at: last, worker, task, event }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_of_a_spawn_on_the_same_worker() {
        let of_one = |events| Recorded { thread: None, events, lost: 0 };
        let (place, at) = (Location::caller(), Duration::from_nanos);
        let workers = [
            vec![
                (at(2), Event::SpawnedAt(place)),
                (at(4), Event::Spawns(7)),
                (at(4), Event::SpawnedAt(place)),
            ],
            vec![(at(1), Event::Spawns(8))],
        ];
        let trace = Trace::new(workers.map(of_one).into(), at(5), Vec::new(), &[]);
        assert!(trace.label(7).starts_with("task #7 ("));
        assert_eq!(trace.label(8), "task #8");
    }
}
