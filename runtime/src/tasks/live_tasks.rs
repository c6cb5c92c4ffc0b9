//! The count of live tasks of a runtime, where their number is limited.

#![forbid(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

use crate::tasks::header::Nature;

/// Counts the live tasks of a runtime, where there is a limit.
pub(crate) struct LiveTasks {
    limit: Option<usize>,
    count: CachePadded<AtomicUsize>,
}

impl LiveTasks {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        LiveTasks { limit, count: CachePadded::new(AtomicUsize::new(0)) }
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

    /// Counts the end of a task of that nature, or its refusal.
    #[inline]
    pub(crate) fn ended(&self, nature: Nature) {
        if self.limit.is_some() && nature.is_counted() {
            // Relaxed: a count that publishes nothing.
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
