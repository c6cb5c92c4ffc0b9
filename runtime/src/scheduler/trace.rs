//! The worker's part of a recording.
//!
//! A recorder gives each worker a track, and sets a flag in the byte that the loop tests. The worker takes the track up at
//! its next event.

use crate::coroutine::stop::{Resumed, Stop};
use crate::scheduler::current;
use crate::scheduler::event::{Encoded, Event};
use crate::scheduler::worker::Worker;
use crate::tasks::header::TaskRef;

impl Worker {
    /// Records an event, if there is a recorder.
    #[inline(always)]
    pub(super) fn record(&self, event: Event) {
        if self.block.observed.is_traced() {
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
        if self.block.observed.takes_change() {
            return self.take_up_track(event);
        }
        if let Some(track) = &*self.tracer.track.borrow() {
            let now = if at > 0 { at } else { track.now() };
            self.tracer.recent.set(now);
            track.record(event, now);
        }
    }

    /// Takes up the track of a new recorder, which begins with the run that is under way.
    #[cold]
    fn take_up_track(&self, event: Encoded) {
        let track = self.block.track.get();
        if let Some(track) = &track {
            if let Some(task) = self.context().running() {
                track.record(Event::Runs(task.header().id.get()).encode(), track.now());
            }
            track.record(event, track.now());
        }
        self.tracer.time_passes();
        self.tracer.track.replace(track);
    }

    /// Records why a run has ended. The task is off its stack.
    pub(super) fn record_stop(&self, task: TaskRef, resumed: Resumed) {
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
        let is_recorded = worker.block.observed.is_traced() && worker.context().running().is_some();
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
