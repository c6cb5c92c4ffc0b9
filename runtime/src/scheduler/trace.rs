//! The worker's part of a recording.
//!
//! A recorder gives each worker a ring, and sets a flag in the byte that the loop tests. The worker takes the ring up at
//! its next event.

use crate::base::cycles::Cycles;
use crate::coroutine::stop::{Resumed, Stop};
use crate::scheduler::current;
use crate::scheduler::event::Event;
use crate::scheduler::worker::Worker;
use crate::tasks::header::TaskRef;

impl Worker {
    /// Records an event, if there is a recorder.
    #[inline]
    pub(super) fn record(&self, event: Event) {
        if self.block.observed.is_traced() {
            self.record_now(event);
        }
    }

    #[cold]
    fn record_now(&self, event: Event) {
        if self.block.observed.takes_change() {
            self.take_up_ring();
        }
        let Some(ring) = &*self.tracer.ring.borrow() else { return };
        // A run begins when the one before has ended, if the worker has done nothing in between.
        let recent =
            if let Event::Runs(_) | Event::SpawnedAt(_) = event { self.tracer.recent.get() } else { 0 };
        let now = if recent > 0 { recent } else { Cycles::of_machine().read() };
        self.tracer.recent.set(now);
        ring.record(event, now);
    }

    /// Takes up the ring of a new recorder, which begins with the run that is under way.
    #[cold]
    fn take_up_ring(&self) {
        let ring = self.block.ring.get();
        if let (Some(ring), Some(task)) = (&ring, self.context().running()) {
            ring.record(Event::Runs(task.header().id.get()), Cycles::of_machine().read());
        }
        self.tracer.time_passes();
        self.tracer.ring.replace(ring);
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
