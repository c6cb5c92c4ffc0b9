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

/// One of the two kinds of locks.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    lock: fn(&File) -> io::Result<()>,
    try_lock: fn(&File) -> Result<(), TryLockError>,
}

pub(super) const EXCLUSIVE: Kind = Kind { lock: File::lock, try_lock: File::try_lock };
pub(super) const SHARED: Kind = Kind { lock: File::lock_shared, try_lock: File::try_lock_shared };

/// Waits until the file is locked in this way.
pub(super) fn lock(file: &File, kind: Kind) -> io::Result<()> {
    if !wait::in_task() {
        return (kind.lock)(file);
    }
    let look = || match (kind.try_lock)(file) {
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
