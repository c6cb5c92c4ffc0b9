//! The count of live tasks of a runtime, where their number is limited, and of those that end without a value.

#![forbid(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

use crate::tasks::header::Nature;

/// Counts the live tasks of a runtime, where there is a limit.
pub(crate) struct LiveTasks {
    limit: Option<usize>,
    count: CachePadded<AtomicUsize>,
    cancelled: AtomicU64,
    panicked: AtomicU64,
}

impl LiveTasks {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        let [cancelled, panicked] = [0; 2].map(AtomicU64::new);
        LiveTasks { limit, count: CachePadded::new(AtomicUsize::new(0)), cancelled, panicked }
    }

    /// Makes room for one more live task of that nature.
    ///
    /// # Errors
    /// An error that names the limit, if it is reached.
    pub(crate) fn admit(&self, nature: Nature) -> io::Result<()> {
        let Some(limit) = self.limit.filter(|_| nature.is_counted()) else { return Ok(()) };
        let more = |live| Some(live + 1).filter(|live| *live <= limit);
        // Relaxed: a count that publishes nothing.
        if self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
            return Ok(());
        }
        let text = format!("no task left: all {limit} that max_tasks allows are alive");
        Err(io::Error::new(io::ErrorKind::OutOfMemory, text))
    }

    /// Counts the end of a task by its cancellation.
    pub(crate) fn note_cancelled(&self) {
        // Relaxed: a count that publishes nothing.
        self.cancelled.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a task by a panic.
    pub(crate) fn note_panicked(&self) {
        // Relaxed: as above.
        self.panicked.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many tasks have ended by their cancellation.
    pub(crate) fn cancelled(&self) -> u64 {
        // Relaxed: as above.
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns how many tasks have ended by a panic.
    pub(crate) fn panicked(&self) -> u64 {
        // Relaxed: as above.
        self.panicked.load(Ordering::Relaxed)
    }

    /// Counts the end of a task of that nature, or its refusal.
    #[inline]
    pub(crate) fn ended(&self, nature: Nature) {
        if self.limit.is_some() && nature.is_counted() {
            // Relaxed: a count that publishes nothing.
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
