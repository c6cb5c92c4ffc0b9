//! Locks on files.
//!
//! A wait for a lock may take for ever, and the system has no readiness for it. Tasks look again
//! and again instead. So a task that leaves has taken nothing, and waiters keep no thread of the
//! pool from the owner, which may need a thread to write to the file before it unlocks.

#![forbid(unsafe_code)]

use std::fs::{File, TryLockError};
use std::io;

use fibra_runtime::wait;

use crate::waiting::looks::look_until;

/// Waits until the file is locked, by `lock` in a thread, and by `try_lock` in a task and inside a timeout.
pub(super) fn lock_by(
    file: &File,
    lock: fn(&File) -> io::Result<()>,
    try_lock: fn(&File) -> Result<(), TryLockError>,
) -> io::Result<()> {
    if !wait::may_end_early() {
        return lock(file);
    }
    let look = || match try_lock(file) {
        Ok(()) => Ok(Some(())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    };
    match look()? {
        Some(()) => wait::charge(),
        // Without a deadline it ends with the lock.
        None => _ = look_until(None, look)?,
    }
    Ok(())
}
