//! Waits for children that were dropped, so that the system can forget them when they end.

#![forbid(unsafe_code)]

use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use fibra_runtime::driver::unpinned;

/// Bytes of the stack of a thread that only waits.
const STACK: usize = 64 << 10;

/// Children that no thread waits for yet.
static ORPHANS: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Waits for a child on a thread of its own. Where the system has no thread, that of a later child does.
pub(super) fn reap(child: Child) {
    lock().push(child);
    let thread = thread::Builder::new().name("fibra-reaper".to_owned()).stack_size(STACK);
    _ = unpinned(|| thread.spawn(wait_for_orphans));
}

fn wait_for_orphans() {
    loop {
        let Some(mut child) = lock().pop() else { return };
        // An error means that there is no such child any more.
        _ = child.wait();
    }
}

fn lock() -> MutexGuard<'static, Vec<Child>> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}
