//! What a worker notes of single runs and wakes, where the program asks for it.
//!
//! The loop tests one byte before each run and at each wake. What the bits ask for is off the path of
//! other runtimes.
//!
//! While a task is ready its timer is not armed, so the timer's node has the time of the wake.

#![forbid(unsafe_code)]

use crate::coroutine::stop::{Resumed, Stop};
use crate::scheduler::event::Event;
use crate::scheduler::worker::Worker;
use crate::tasks::header::TaskRef;

impl Worker {
    /// Notes that a task begins a run. Returns when it begins, if the run is measured.
    pub(super) fn run_begins(&self, task: TaskRef) -> Option<u64> {
        self.block.run.begin(task);
        self.record(Event::Runs(task.header().id.get()));
        let histograms = self.block.histograms.as_deref()?;
        let stamp = task.header().timer.take_stamp();
        let is_due = self.samples.runs.is_due(histograms.every);
        if stamp == 0 && !is_due {
            return None;
        }
        let now = histograms.cycles.read();
        if stamp > 0 {
            histograms.record_delay(stamp, now);
        }
        is_due.then_some(now)
    }

    /// Notes that the run of a task ends.
    pub(super) fn run_ends(&self, task: TaskRef, begin: Option<u64>, resumed: Resumed) {
        self.record_stop(task, resumed);
        let Some(histograms) = self.block.histograms.as_deref() else { return };
        let is_due = resumed.stop() == Some(Stop::Yielded) && self.samples.wakes.is_due(histograms.every);
        if begin.is_none() && !is_due {
            return;
        }
        let now = histograms.cycles.read();
        if let Some(begin) = begin {
            histograms.runs.record(histograms.cycles.nanos(now.saturating_sub(begin)));
        }
        if is_due {
            task.header().timer.stamp(now);
        }
    }

    /// Notes that a task was spawned.
    #[cold]
    pub(super) fn note_spawned(&self, task: TaskRef) {
        let header = task.header();
        self.record(Event::Spawns(header.id.get()));
        if let Some(place) = header.spawned_at() {
            self.record(Event::SpawnedAt(place));
        }
        self.stamp(task);
    }

    /// Notes that a task is ready, which was woken.
    #[cold]
    pub(super) fn note_ready(&self, task: TaskRef) {
        if self.observed.is_traced() {
            let event = self.tracer.cause.get().unwrap_or(Event::Wakes);
            self.record(event(task.header().id.get()));
        }
        self.stamp(task);
    }

    fn stamp(&self, task: TaskRef) {
        if let Some(histograms) = self.block.histograms.as_deref()
            && self.samples.wakes.is_due(histograms.every)
        {
            let arrived = self.samples.arrived.get();
            task.header().timer.stamp(if arrived > 0 { arrived } else { histograms.cycles.read() });
        }
    }

    /// Notes that the worker begins to take tasks that other threads have woken.
    pub(super) fn arrivals_begin(&self) {
        self.tracer.cause.set(Some(Event::Takes));
        if let Some(histograms) = self.block.histograms.as_deref() {
            self.samples.arrived.set(histograms.take_arrival());
        }
    }

    pub(super) fn arrivals_end(&self) {
        self.tracer.cause.set(None);
        self.samples.arrived.set(0);
    }
}
