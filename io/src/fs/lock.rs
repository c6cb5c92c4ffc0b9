//! Waiting for a lock on a file, which may take for ever.
//!
//! The wait blocks a thread of the pool, which a cancelled task must be able to leave. So it has a descriptor of its own,
//! and when it has the lock at last and nobody wants it any more, it gives it back.

#![forbid(unsafe_code)]

use std::fs::{File, TryLockError};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use fibra_runtime::wait;

use crate::detached::detached;

/// Nobody has come yet; then who came first: the lock, or the end of the wait.
const OPEN: u8 = 0;
const LOCKED: u8 = 1;
const LEFT: u8 = 2;

/// Waits for a lock of one of the two kinds.
pub(super) fn wait_for(
    file: &File,
    try_lock: impl Fn(&File) -> Result<(), TryLockError>,
    lock: impl Fn(&File) -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    if !wait::in_task() {
        return lock(file);
    }
    match try_lock(file) {
        Ok(()) => {
            wait::charge();
            Ok(())
        }
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) => wait_on_pool(file, lock),
    }
}

fn wait_on_pool(file: &File, lock: impl Fn(&File) -> io::Result<()> + Send + 'static) -> io::Result<()> {
    let clone = file.try_clone()?;
    let mut waiting = Waiting { first: Arc::new(AtomicU8::new(OPEN)), file: Some(file) };
    let first = Arc::clone(&waiting.first);
    let outcome = detached(move || {
        lock(&clone)?;
        // AcqRel: pairs with itself in `Waiting`; the second of the two sees what the first has done.
        match first.swap(LOCKED, Ordering::AcqRel) {
            LEFT => clone.unlock(),
            _ => Ok(()),
        }
    });
    waiting.file = None;
    outcome
}

/// The wait, which gives the lock back if it is left before it has ended.
struct Waiting<'a> {
    first: Arc<AtomicU8>,
    file: Option<&'a File>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // AcqRel: as above.
        if let Some(file) = self.file
            && self.first.swap(LEFT, Ordering::AcqRel) == LOCKED
        {
            // It fails only on what is no open descriptor.
            let _ = file.unlock();
        }
    }
}
