#![forbid(unsafe_code)]

pub(crate) mod counters;

use crossbeam_utils::CachePadded;

use crate::base::primitive::{Mutex, MutexGuard, Ordering, fence};
use crate::scheduler::idle::counters::{Counters, Snapshot};

/// Tracks the idle workers of one runtime.
pub(crate) struct Idle {
    /// On a cache line of its own: every spawn reads it, and other writes must not evict it.
    counters: CachePadded<Counters>,
    /// The parked workers. The last one parked is woken first, since its caches are warm. The
    /// counters change under this lock together with it.
    parked: CachePadded<Mutex<Vec<Parked>>>,
    workers: u64,
}

struct Parked {
    index: usize,
    watching: bool,
}

/// Tells what a parking worker has seen of the other workers' queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sight {
    Nothing,
    /// New spawns since its last look, none of which waits: one watcher suffices for these.
    News,
    /// A task waits that the worker cannot take yet.
    Waiting,
}

impl Idle {
    pub(crate) fn new(workers: usize) -> Self {
        Idle {
            counters: CachePadded::new(Counters::new()),
            parked: CachePadded::new(Mutex::new(Vec::with_capacity(workers))),
            workers: workers as u64,
        }
    }

    /// Enters the search, unless half of the workers search already.
    pub(crate) fn try_search(&self) -> bool {
        self.counters.try_search(self.workers)
    }

    /// Leaves the search. Returns true for the last searcher, which wakes a worker if work is left.
    pub(crate) fn end_search(&self) -> bool {
        self.counters.end_search()
    }

    /// Counts worker `index` as parked, and returns whether it is to watch.
    ///
    /// The worker checks the queues again before it really parks. It checks the other workers'
    /// queues only if it saw nothing there: otherwise it watches, or relies on a watcher.
    pub(crate) fn park(&self, index: usize, searching: bool, sight: Sight) -> bool {
        let mut parked = self.lock();
        let watching = match sight {
            Sight::Nothing => false,
            Sight::News => self.counters.snapshot().watching == 0,
            Sight::Waiting => true,
        };
        parked.push(Parked { index, watching });
        self.counters.park(searching, watching);
        watching
    }

    /// Counts worker `index` as running again.
    ///
    /// Returns false if a producer did so before and made it a searcher.
    pub(crate) fn unpark(&self, index: usize) -> bool {
        let mut parked = self.lock();
        let Some(place) = parked.iter().position(|p| p.index == index) else { return false };
        let entry = parked.remove(place);
        self.counters.unpark(entry.watching, false);
        true
    }

    /// Returns the worker to wake, if any, after a task was queued where its spawner will look.
    #[must_use]
    pub(crate) fn after_spawn(&self) -> Option<usize> {
        self.pick(Snapshot::wants_wake)
    }

    /// Returns the worker to wake, if any, after a task was queued where no worker is sure to look
    /// soon.
    #[must_use]
    pub(crate) fn after_global(&self) -> Option<usize> {
        self.pick(Snapshot::wants_wake_at_once)
    }

    /// Returns true if a worker is parked or searches; a hint.
    pub(crate) fn has_idle(&self) -> bool {
        let now = self.counters.snapshot();
        now.parked + now.searching > 0
    }

    fn pick(&self, wanted: fn(Snapshot) -> bool) -> Option<usize> {
        // The fence of the store-load pair: the task was queued before, the counters are read after.
        fence(Ordering::SeqCst);
        if !wanted(self.counters.snapshot()) {
            return None;
        }
        let mut parked = self.lock();
        if !wanted(self.counters.snapshot()) {
            return None;
        }
        let entry = parked.pop()?;
        self.counters.unpark(entry.watching, true);
        Some(entry.index)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Parked>> {
        self.parked.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
