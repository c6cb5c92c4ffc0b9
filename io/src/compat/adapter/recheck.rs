//! Wakes futures that wait to write into a Unix socket, so that they look again.
//!
//! The system does not tell a poll that such a socket was shut down while it was full. A task looks again at a deadline
//! of its own wait. A future has no timer, and may be polled where no runtime is, so a thread of the library wakes it.
//! The thread lives while such futures wait.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{mem, thread};

use fibra_runtime::driver::unpinned;

use crate::readiness::source::Source;
use crate::sys::Direction;
use crate::waiting::op::RECHECK;

#[cfg(test)]
mod tests;

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { round: Round::new(), has_thread: false });

struct Waiting {
    round: Round,
    has_thread: bool,
}

/// The sources whose writers are woken together, each once, in the order of their arrival.
struct Round {
    sources: Vec<Weak<Source>>,
    /// The addresses of `sources`, which stay taken while the weak pointers are there.
    addresses: BTreeSet<usize>,
}

impl Round {
    const fn new() -> Round {
        Round { sources: Vec::new(), addresses: BTreeSet::new() }
    }

    fn add(&mut self, source: &Arc<Source>) {
        if self.addresses.insert(Arc::as_ptr(source).addr()) {
            self.sources.push(Arc::downgrade(source));
        }
    }
}

/// Wakes the writers of `source` within [`RECHECK`]. Called after the future has left its waker there.
pub(super) fn recheck_later(source: &Arc<Source>) {
    let mut waiting = lock();
    waiting.round.add(source);
    if !waiting.has_thread {
        let thread = thread::Builder::new().name("fibra-recheck".to_owned());
        waiting.has_thread = unpinned(|| thread.spawn(recheck)).is_ok();
        if !waiting.has_thread {
            // Without the thread the future polls in a loop: slow, but not stuck.
            waiting.round = Round::new();
            drop(waiting);
            source.notify(Direction::Write);
        }
    }
}

/// Runs the thread: wakes all sources of a round, and ends after a round without any.
fn recheck() {
    loop {
        thread::sleep(RECHECK);
        let mut waiting = lock();
        let sources = mem::replace(&mut waiting.round, Round::new()).sources;
        waiting.has_thread = !sources.is_empty();
        drop(waiting);
        if sources.is_empty() {
            return;
        }
        for source in sources.iter().filter_map(Weak::upgrade) {
            source.notify(Direction::Write);
        }
    }
}

fn lock() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}
