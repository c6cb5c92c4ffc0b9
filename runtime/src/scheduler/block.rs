//! The part of a worker that other threads may reach.
//!
//! The block outlives the worker while any count of it is held. A thread that wakes a task of
//! another worker takes a count before it pushes: after the push the task may run, end, and let its
//! whole runtime end.
//!
//! `park_state.rs` tells whether its worker has to be woken.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crossbeam_utils::CachePadded;

use crate::base::sys;
use crate::scheduler::cancelled::Cancelled;
use crate::scheduler::counters::Counters;
use crate::scheduler::driver::Unpark;
use crate::scheduler::histogram::Histograms;
use crate::scheduler::inbox::Inbox;
use crate::scheduler::park_state::{Found, ParkState};
use crate::scheduler::queue;
use crate::scheduler::queue::{Shared, Thief};
use crate::scheduler::registry::Registry;
use crate::scheduler::run_watch::Run;
use crate::scheduler::samples::TrackSlot;
use crate::tasks::header::{HomeWorker, TaskRef};
use crate::timer::ticks::Ticks;

pub(crate) struct Block {
    pub(crate) index: usize,
    /// Started tasks of this worker that other threads woke, and tasks that were spawned for it.
    pub(crate) inbox: Inbox,
    /// Tasks whose cancel flags it is to check.
    pub(crate) cancelled: Cancelled,
    /// Unstarted tasks that other workers placed here; thieves may take them as well.
    pub(crate) placed: Shared,
    /// The thieves' end of the stealable queue.
    pub(crate) thief: Thief,
    /// Only this worker writes them.
    pub(crate) counters: CachePadded<Counters>,
    /// The started tasks that are bound to this worker.
    pub(crate) registry: Registry,
    /// Written by this worker only, where the program asks for them.
    pub(crate) histograms: Option<Box<Histograms>>,
    /// The track of a recorder.
    pub(crate) track: TrackSlot,
    /// The present run, for observers.
    pub(crate) run: Run,
    state: ParkState,
    /// The worker has nothing to run, and takes what is placed here. A hint.
    resting: AtomicBool,
    unparker: OnceLock<Arc<dyn Unpark>>,
    /// Its thread, and the begin of its timer wheel.
    thread: OnceLock<(Option<i32>, Instant)>,
}

impl Block {
    pub(crate) fn new(index: usize, thief: queue::Thief, histograms: Option<NonZeroU32>) -> Self {
        Block {
            index,
            inbox: Inbox::new(),
            cancelled: Cancelled::new(),
            placed: queue::Shared::new(),
            thief,
            counters: CachePadded::default(),
            registry: Registry::new(),
            track: TrackSlot::default(),
            histograms: histograms.map(|every| Box::new(Histograms::new(every))),
            run: Run::default(),
            state: ParkState::new(),
            resting: AtomicBool::new(false),
            unparker: OnceLock::new(),
            thread: OnceLock::new(),
        }
    }

    pub(crate) fn set_unparker(&self, unparker: Arc<dyn Unpark>) {
        _ = self.unparker.set(unparker);
    }

    /// Notes the calling thread as that of the worker, and the begin of its timer wheel.
    pub(crate) fn set_thread(&self, begin: Instant) {
        _ = self.thread.set((sys::thread_id(), begin));
    }

    /// Returns the system's number of the worker's thread.
    pub(crate) fn thread(&self) -> Option<i32> {
        self.thread.get()?.0
    }

    /// Returns the moment of a tick of the worker's timer wheel.
    pub(crate) fn moment_of(&self, tick: u64) -> Option<Instant> {
        Ticks::since(self.thread.get()?.1).start_of(tick)
    }

    /// Returns the block as its tasks point to it.
    pub(crate) fn as_home(self: &Arc<Self>) -> *const HomeWorker {
        Arc::as_ptr(self).cast()
    }

    /// Returns how many tasks the worker has taken that thieves might have taken; a hint.
    pub(crate) fn taken(&self) -> u64 {
        self.counters.taken.get()
    }

    /// Returns how many tasks were spawned on the worker; a hint.
    pub(crate) fn spawned(&self) -> u64 {
        self.counters.tasks.spawned()
    }

    /// Returns how many tasks wait here that thieves may take.
    pub(crate) fn waiting(&self) -> usize {
        self.thief.len() + self.placed.len()
    }

    /// Hands a task that the caller was told to queue to its home worker.
    #[inline(never)]
    pub(crate) fn deliver(home: *const HomeWorker, task: TaskRef) {
        // SAFETY: the task is asleep and bound to that worker, or is about to leave its stack
        // there. No worker ends before its tasks. So the block is alive until the push, and by this
        // count after it.
        let block = unsafe { counted(home) };
        block.push_to_inbox(task);
        block.unpark_if_parked();
    }

    /// Puts a task into the inbox. The caller then unparks the worker.
    pub(crate) fn push_to_inbox(&self, task: TaskRef) {
        if let Some(histograms) = &self.histograms {
            histograms.note_arrival();
        }
        self.inbox.push(task);
    }

    /// Sends a task to its home worker, which checks its cancel flags.
    ///
    /// The caller has noted the task (`home_worker.rs`).
    pub(crate) fn send_cancelled(home: *const HomeWorker, task: TaskRef) {
        // SAFETY: the task had not ended when it was noted, and at its end its worker waits for
        // noted tasks to arrive. So the block is alive until the push, and by this count after it.
        let block = unsafe { counted(home) };
        block.cancelled.push(task);
        block.unpark_if_parked();
    }

    /// Notes whether the worker is at rest. Called by the worker.
    pub(crate) fn set_resting(&self, resting: bool) {
        // Relaxed: a hint.
        self.resting.store(resting, Ordering::Relaxed);
    }

    /// Returns true while the worker searches, polls or parks, and can start tasks; a hint.
    pub(crate) fn is_resting(&self) -> bool {
        // Relaxed: a hint.
        self.resting.load(Ordering::Relaxed)
    }

    /// Returns true while the worker is in its park, and no task is on its stack.
    pub(crate) fn is_parked(&self) -> bool {
        self.state.is_parked()
    }

    /// Breaks the worker's park, if it is in one. Called after work was put where the worker looks.
    pub(crate) fn unpark_if_parked(&self) {
        if self.is_parked() {
            self.unpark();
        }
    }

    /// Makes the present park return, or else the next one.
    pub(crate) fn unpark(&self) {
        if self.state.unpark() == Found::Parked {
            self.unparker.get().expect("a worker parks after it has set its unparker").unpark();
        }
    }

    /// Announces a park, which other threads then have to break.
    ///
    /// Returns false if a notice has come already.
    pub(crate) fn begin_park(&self) -> bool {
        self.state.begin_park()
    }

    /// Ends the park. Called by the worker.
    pub(crate) fn end_park(&self) {
        self.state.end_park();
    }
}

/// # Safety
/// The pointer is of [`Block::as_home`], and the block is alive.
unsafe fn counted(home: *const HomeWorker) -> Arc<Block> {
    let block = home.cast::<Block>();
    // SAFETY: by this function's contract; blocks live in an `Arc`.
    unsafe {
        Arc::increment_strong_count(block);
        Arc::from_raw(block)
    }
}
