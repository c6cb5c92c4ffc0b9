//! All stacks of one runtime: its classes, and the limit over them.
//!
//! ```text
//!  the taker                                     the giver
//!
//!  reserve: outside := outside + n, if the       the stacks go to the exchange,
//!           limit allows                         release: outside := outside - n
//!  takes from the exchange, or maps,
//!  release: what it did not get
//!  nothing left: an error
//! ```
//!
//! Stacks are counted as outside before they are taken and for as long as they are, so the limit
//! holds. Once the count comes down, the stacks are in the exchange already.

#![forbid(unsafe_code)]

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::base::primitive::{AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::stack::exchange::{Class, Counts};
use crate::stack::guard::StackGuards;
use crate::stack::size;
use crate::stack::sys;

/// The default of [`Config::size`] in bytes. Frames of code that is not optimised are several times as large.
const DEFAULT_SIZE: usize = if cfg!(debug_assertions) { 1024 * 1024 } else { 256 * 1024 };

/// The default of [`Config::trim_after`].
const TRIM_AFTER: Duration = Duration::from_secs(1);

/// Configures the stacks of a runtime.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The usual size in bytes of address space, guard included; rounded up to a power of two.
    pub(crate) size: usize,
    /// The kind of guards.
    pub(crate) guards: StackGuards,
    /// The most stacks that may be in use or warm at a time, over all workers and sizes.
    pub(crate) max_stacks: Option<usize>,
    /// The age at which an unused stack is cold. One second unless set.
    pub(crate) trim_after: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { size: DEFAULT_SIZE, guards: StackGuards::Auto, max_stacks: None, trim_after: TRIM_AFTER }
    }
}

/// Owns the stacks of one runtime.
///
/// Workers use them through their [`Pool`](crate::stack::pool::Pool)s.
pub(crate) struct Stacks {
    config: Config,
    classes: Mutex<Vec<Arc<Class>>>,
    /// Stacks outside the exchanges, including those that a pool may still cut.
    outside: AtomicUsize,
}

impl Stacks {
    /// Prepares stacks; maps nothing yet.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where the configured size does not fit into the address space.
    pub(crate) fn new(mut config: Config) -> io::Result<Arc<Self>> {
        config.size = size::class_of(config.size, sys::page_size())?;
        Ok(Arc::new(Self { config, classes: Mutex::new(Vec::new()), outside: AtomicUsize::new(0) }))
    }

    #[cfg(test)]
    /// Returns the usual size, rounded.
    pub(crate) fn size(&self) -> usize {
        self.config.size
    }

    /// Counts what there is, for reports and tests. Moving while workers run.
    pub(crate) fn counts(&self) -> Counts {
        // Relaxed: a statistic.
        let mut counts = Counts { outside: self.outside.load(Ordering::Relaxed), ..Counts::default() };
        self.lock().iter().for_each(|class| class.count(&mut counts));
        counts
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the class of stacks of `size` bytes, a size that [`size::class_of`] returned.
    pub(super) fn class(&self, size: usize) -> Arc<Class> {
        let mut classes = self.lock();
        if let Some(class) = classes.iter().find(|class| class.size() == size) {
            return Arc::clone(class);
        }
        let guard = size::guard_of(size, sys::page_size());
        let class = Arc::new(Class::new(size, guard, self.config.guards));
        classes.push(Arc::clone(&class));
        class
    }

    /// Counts up to `most` stacks as outside, fewer where the limit leaves fewer, and returns how many.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` where the limit leaves none.
    pub(super) fn reserve(&self, most: usize) -> io::Result<usize> {
        let limit = self.config.max_stacks.unwrap_or(usize::MAX);
        let granted = |outside: usize| most.min(limit.saturating_sub(outside));
        let more = |outside| Some(granted(outside)).filter(|n| *n > 0).map(|n| outside + n);
        // Relaxed: a count for a limit; the stacks themselves pass through the exchange's mutex.
        match self.outside.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(before) => Ok(granted(before)),
            Err(_) => {
                let text = format!("no stack left: all {limit} that max_stacks allows are in use");
                Err(io::Error::new(io::ErrorKind::OutOfMemory, text))
            }
        }
    }

    /// Counts stacks as back in the exchange.
    pub(super) fn release(&self, stacks: usize) {
        // Relaxed: as in `reserve`.
        self.outside.fetch_sub(stacks, Ordering::Relaxed);
    }

    /// Returns true if `max_stacks` is set.
    pub(crate) fn is_limited(&self) -> bool {
        self.config.max_stacks.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Class>>> {
        // Nothing panics halfway through a change of the list.
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
