//! Locks on files.
//!
//! A wait for one may take for ever, and blocks a thread of the pool, which a cancelled task must be able to leave. So it
//! has a descriptor of its own there, and a lock that comes when nobody wants it any more is given back.
//!
//! The kernel knows one lock for all descriptors of an open file, so that must not be somebody else's. What we know of it,
//! whether one of our users holds it, is kept beside the open file, and changes under one mutex together with the lock.

#![forbid(unsafe_code)]

use std::fs::{File, TryLockError};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fibra_runtime::wait;

use crate::detached::detached;

/// Whether a user of ours holds the lock of an open file.
#[derive(Clone, Default)]
pub(super) struct Held(Arc<Mutex<bool>>);

/// One of the two kinds of locks.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    lock: fn(&File) -> io::Result<()>,
    try_lock: fn(&File) -> Result<(), TryLockError>,
}

pub(super) const EXCLUSIVE: Kind = Kind { lock: File::lock, try_lock: File::try_lock };
pub(super) const SHARED: Kind = Kind { lock: File::lock_shared, try_lock: File::try_lock_shared };

impl Held {
    fn get(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn try_lock(&self, file: &File, kind: Kind) -> Result<(), TryLockError> {
        let mut held = self.get();
        (kind.try_lock)(file)?;
        *held = true;
        Ok(())
    }

    pub(super) fn unlock(&self, file: &File) -> io::Result<()> {
        let mut held = self.get();
        file.unlock()?;
        *held = false;
        Ok(())
    }

    pub(super) fn lock(&self, file: &File, kind: Kind) -> io::Result<()> {
        if !wait::in_task() {
            return self.lock_for(file, kind, &Ticket::default());
        }
        match self.try_lock(file, kind) {
            Ok(()) => {
                wait::charge();
                Ok(())
            }
            Err(TryLockError::Error(error)) => Err(error),
            Err(TryLockError::WouldBlock) => self.lock_on_pool(file, kind),
        }
    }

    fn lock_on_pool(&self, file: &File, kind: Kind) -> io::Result<()> {
        let (clone, held) = (file.try_clone()?, self.clone());
        let mut waiting = Waiting { held: self, file: Some(file), ticket: Arc::default() };
        let ticket = Arc::clone(&waiting.ticket);
        let outcome = detached(move || held.lock_for(&clone, kind, &ticket));
        waiting.file = None;
        outcome
    }

    /// Blocks the thread until the file is locked for the one with this ticket, or he has left.
    fn lock_for(&self, file: &File, kind: Kind, ticket: &Ticket) -> io::Result<()> {
        loop {
            (kind.lock)(file)?;
            let mut held = self.get();
            // Relaxed, here and below: both are reached under the mutex only.
            if ticket.left.load(Ordering::Relaxed) {
                return if *held { Ok(()) } else { file.unlock() };
            }
            // Whoever gave a lock back since may have meant this one.
            match (kind.try_lock)(file) {
                Ok(()) => {
                    *held = true;
                    ticket.served.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

/// What the one who waits and the one who waits for him have to tell each other.
#[derive(Default)]
struct Ticket {
    left: AtomicBool,
    served: AtomicBool,
}

/// A wait, which is left if this is dropped with its file.
struct Waiting<'a> {
    held: &'a Held,
    file: Option<&'a File>,
    ticket: Arc<Ticket>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(file) = self.file else { return };
        let mut held = self.held.get();
        // Relaxed, both: see `lock_for`.
        self.ticket.left.store(true, Ordering::Relaxed);
        if self.ticket.served.load(Ordering::Relaxed) {
            *held = false;
            // It fails only on what is no open descriptor.
            let _ = file.unlock();
        }
    }
}
