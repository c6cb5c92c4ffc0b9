//! The worker's part of a recording.
//!
//! A recorder gives each worker a track. The worker takes it up when it next looks at its driver, and then sets a flag in the
//! byte that the loop tests.

use crate::coroutine::stop::{Resumed, Stop};
use crate::scheduler::current;
use crate::scheduler::event::{Encoded, Event};
use crate::scheduler::worker::Worker;
use crate::tasks::header::TaskRef;

impl Worker {
    /// Records an event, if there is a recorder.
    #[inline(always)]
    pub(super) fn record(&self, event: Event) {
        if self.observed.is_traced() {
            // A run begins when the one before has ended, if the worker has done nothing in between.
            match event {
                Event::Runs(_) | Event::SpawnedAt(_) => {
                    self.record_at(event.encode(), self.tracer.recent.get())
                }
                _ => self.record_at(event.encode(), 0),
            }
        }
    }

    /// Records an event of that time; 0 stands for now.
    #[cold]
    fn record_at(&self, event: Encoded, at: u64) {
        if let Some(track) = &*self.tracer.track.borrow() {
            let now = if at > 0 { at } else { track.now() };
            self.tracer.recent.set(now);
            track.record(event, now);
        }
    }

    /// Takes up the track of a new recorder, which begins with the run that is under way, or leaves the old one.
    pub(crate) fn take_up_track(&self) {
        let Some(track) = self.block.track.take_change() else { return };
        self.observed.set_traced(track.is_some());
        self.tracer.track.replace(track);
        if let Some(task) = self.context().running() {
            task.header().trace_run();
            self.tracer.time_passes();
            self.record(Event::Runs(task.header().id.get()));
        }
    }

    /// Records why a run has ended. The task is off its stack.
    pub(super) fn record_stop(&self, task: TaskRef, resumed: Resumed) {
        if !self.observed.is_traced() {
            return;
        }
        self.record(match resumed.stop() {
            Some(Stop::Yielded) => Event::Yields,
            // SAFETY: the task has left its stack on this worker, which runs none now.
            Some(Stop::Asleep) => Event::Sleeps(unsafe { task.noted_wait() }),
            None => Event::Ends,
        });
    }
}

/// Begins a span of the running task. Returns false if there is none, or no recorder.
pub fn span_begins(name: &'static str) -> bool {
    let begins = |worker: &Worker| {
        worker.take_up_track();
        let is_recorded = worker.observed.is_traced() && worker.context().running().is_some();
        if is_recorded {
            worker.record(Event::SpanBegins(name));
        }
        is_recorded
    };
    current::with_worker(begins) == Some(true)
}

/// Ends the innermost span of the running task.
pub fn span_ends() {
    current::with_worker(|worker| worker.record(Event::SpanEnds));
}
