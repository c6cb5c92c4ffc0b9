//! Wakes futures that wait to write into a Unix socket, so that they look again.
//!
//! The system does not tell a poll that such a socket was shut down while it was full. A task looks again at a deadline
//! of its own wait. A future has no timer, and may be polled where no runtime is, so a thread of the library wakes it.
//! The thread lives while such futures wait.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{mem, thread};

use fibra_runtime::driver::unpinned;

use crate::readiness::source::Source;
use crate::sys::Direction;
use crate::waiting::op::RECHECK;

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { sources: BTreeMap::new(), has_thread: false });

struct Waiting {
    /// The sources whose writers are woken together, by their addresses, which stay taken while the weak pointers are there.
    sources: BTreeMap<usize, Weak<Source>>,
    has_thread: bool,
}

/// Wakes the writers of `source` within [`RECHECK`]. Called after the future has left its waker there.
pub(super) fn recheck_later(source: &Arc<Source>) {
    let mut waiting = lock();
    waiting.sources.insert(Arc::as_ptr(source).addr(), Arc::downgrade(source));
    if !waiting.has_thread {
        let thread = thread::Builder::new().name("fibra-recheck".to_owned());
        waiting.has_thread = unpinned(|| thread.spawn(recheck)).is_ok();
        if !waiting.has_thread {
            // Without the thread the future polls in a loop: slow, but not stuck.
            waiting.sources.clear();
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
        let sources = mem::take(&mut waiting.sources);
        waiting.has_thread = !sources.is_empty();
        drop(waiting);
        if sources.is_empty() {
            return;
        }
        for source in sources.values().filter_map(Weak::upgrade) {
            source.notify(Direction::Write);
        }
    }
}

fn lock() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}
