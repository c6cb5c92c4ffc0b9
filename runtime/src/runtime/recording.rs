//! A recording of what the workers of a runtime do.

#![forbid(unsafe_code)]

use std::io;
use std::ptr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::base::cycles::Cycles;
use crate::runtime::handle::Handle;
use crate::scheduler::block::Block;
use crate::scheduler::current;
use crate::scheduler::event::{self, Event, Track};
use crate::scheduler::shared::{Shared, StallHook};
use crate::scheduler::worker::Worker;
use crate::tasks::sleeper::TaskState;
use crate::tasks::task::Task;

/// Makes the workers of a runtime record what they do, until dropped.
///
/// A worker that is parked then keeps its events in memory until it is woken.
pub struct Recording {
    shared: Arc<Shared>,
    tracks: Vec<Arc<Track>>,
    /// The counter of the machine at the begin.
    begin: u64,
}

/// What is recorded of one worker.
pub struct Recorded {
    /// The system's number of its thread, once that has started.
    pub thread: Option<i32>,
    /// Its last events in their order, with the times since the begin of the recording.
    pub events: Vec<(Duration, Event)>,
    /// How many events there were before those.
    pub lost: u64,
}

impl Recording {
    /// Begins to record so many events for each worker, a power of two.
    ///
    /// A worker begins within 128 runs of tasks. `on_stall` is called at each stall that the runtime's watch finds, with
    /// the worker's index and how long the task has held it.
    ///
    /// # Errors
    /// `AlreadyExists` if the runtime is recorded already.
    ///
    /// # Panics
    /// If the number of events is no power of two.
    pub fn start(
        handle: &Handle,
        events: usize,
        on_stall: impl Fn(&Task, usize, Duration) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::clone(handle.shared());
        let on_stall: Arc<StallHook> = Arc::new(on_stall);
        let begin = Cycles::of_machine().read();
        {
            let mut recorder = shared.recorder.lock().unwrap_or_else(PoisonError::into_inner);
            if recorder.is_some() {
                let text = "the runtime has a recorder already, which is to be dropped first";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            *recorder = Some(on_stall);
        }
        // Dropped on a panic.
        let mut recording = Recording { shared, tracks: Vec::new(), begin };
        let new_track = |_: &Arc<Block>| Arc::new(Track::new(events));
        recording.tracks = recording.shared.blocks.iter().map(new_track).collect();
        let blocks = recording.shared.blocks.iter().zip(&recording.tracks);
        blocks.for_each(|(block, track)| block.track.set(Some(Arc::clone(track))));
        // The caller's own worker begins here, the others when they next look for events.
        current::with_worker(Worker::take_up_track);
        Ok(recording)
    }

    /// Returns how long the recording lasts so far.
    pub fn time(&self) -> Duration {
        let now = Cycles::of_machine().read();
        self.since_begin(now, now)
    }

    /// Returns what is recorded of each worker. Nothing is stopped.
    ///
    /// Where a worker has recorded nothing and runs a task, the events are one run of it, from the start of the recording or from
    /// the spawn of the task, whichever is later. When that run began is not known.
    pub fn read(&self) -> Vec<Recorded> {
        let of_worker = |(track, block): (&Arc<Track>, &Arc<Block>)| {
            let ((events, lost), now) = (track.read(), Cycles::of_machine().read());
            let timed = |(count, event)| (self.since_begin(now, count), event);
            let mut events: Vec<_> = events.into_iter().map(timed).collect();
            if events.is_empty() {
                // The worker has not looked for the track yet, or it is parked.
                events.extend(self.held_by(block));
            }
            Recorded { thread: block.thread(), events, lost }
        };
        self.tracks.iter().zip(&self.shared.blocks).map(of_worker).collect()
    }

    /// Returns the run of the task that holds a worker.
    fn held_by(&self, block: &Arc<Block>) -> Option<(Duration, Event)> {
        if block.is_parked() {
            return None;
        }
        // A migratable task is in the registry of the worker where it started.
        let tasks = self.shared.blocks.iter().flat_map(|block| block.registry.tasks());
        let runs_here = |task: &Task| {
            ptr::eq(task.header().home(), block.as_home()) && task.glance().0 == TaskState::Running
        };
        let task = tasks.into_iter().find(runs_here)?;
        Some((self.time().saturating_sub(task.age()), Event::Runs(task.id())))
    }

    fn since_begin(&self, now: u64, count: u64) -> Duration {
        Duration::from_nanos(Cycles::of_machine().nanos(event::since(self.begin, now, count)))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let mut recorder = self.shared.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.blocks.iter().for_each(|block| block.track.set(None));
        let hook = recorder.take();
        // The hook is dropped without the lock.
        drop(recorder);
        drop(hook);
    }
}
