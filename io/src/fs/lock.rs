//! Locks on files.
//!
//! A wait for one may take for ever, and blocks a thread of the pool, which a cancelled task must be able to leave. So it
//! has a descriptor of its own there, and a lock that comes when nobody wants it any more is given back.
//!
//! The kernel knows one lock for all descriptors of an open file, so that must not be somebody else's. What we know of it,
//! how many of our users have taken it since it was given back, is kept beside the open file, and changes under one mutex
//! together with the lock. The one that came too late is given back if nobody else has taken it.

#![forbid(unsafe_code)]

use std::fs::{File, TryLockError};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use fibra_runtime::wait;

use crate::detached::detached;
use crate::op::check_may_wait;

/// Who of our users holds the lock of an open file.
#[derive(Clone, Default)]
pub(super) struct Held(Arc<Mutex<Users>>);

#[derive(Default)]
struct Users {
    /// So many have taken it since it was given back last.
    count: usize,
    /// How often it was given back, or lost.
    round: u64,
}

impl Users {
    fn take(&mut self, file: &File, kind: Kind) -> Result<(), TryLockError> {
        let outcome = (kind.try_lock)(file);
        match &outcome {
            Ok(()) => self.count += 1,
            // So the file has none, and one of the other kind is lost: the system gives that up first.
            Err(TryLockError::WouldBlock) => self.forget(),
            Err(TryLockError::Error(_)) => {}
        }
        outcome
    }

    fn free(&mut self, file: &File) -> io::Result<()> {
        file.unlock().inspect(|()| self.forget())
    }

    fn forget(&mut self) {
        self.count = 0;
        self.round += 1;
    }

    /// One who took it in that round does without. It is given back with the last one.
    fn leave(&mut self, file: &File, round: u64) {
        if self.round != round {
            return;
        }
        match self.count {
            // It fails only on what is no open descriptor.
            1 => _ = self.free(file),
            _ => self.count -= 1,
        }
    }
}

/// One of the two kinds of locks.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    lock: fn(&File) -> io::Result<()>,
    try_lock: fn(&File) -> Result<(), TryLockError>,
}

pub(super) const EXCLUSIVE: Kind = Kind { lock: File::lock, try_lock: File::try_lock };
pub(super) const SHARED: Kind = Kind { lock: File::lock_shared, try_lock: File::try_lock_shared };

impl Held {
    fn users(&self) -> MutexGuard<'_, Users> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn try_lock(&self, file: &File, kind: Kind) -> Result<(), TryLockError> {
        self.users().take(file, kind)
    }

    pub(super) fn unlock(&self, file: &File) -> io::Result<()> {
        self.users().free(file)
    }

    pub(super) fn lock(&self, file: &File, kind: Kind) -> io::Result<()> {
        match self.try_lock(file, kind) {
            Ok(()) => {
                wait::charge();
                Ok(())
            }
            Err(TryLockError::Error(error)) => Err(error),
            Err(TryLockError::WouldBlock) if wait::in_task() => self.lock_on_pool(file, kind),
            Err(TryLockError::WouldBlock) => self.lock_for(file, kind, &Ticket::default()),
        }
    }

    fn lock_on_pool(&self, file: &File, kind: Kind) -> io::Result<()> {
        check_may_wait()?;
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
            let mut users = self.users();
            // Relaxed, here and below: it is reached under the mutex only.
            if ticket.left.load(Ordering::Relaxed) {
                return if users.count > 0 { Ok(()) } else { file.unlock() };
            }
            // Whoever gave a lock back since may have meant this one.
            match users.take(file, kind) {
                Ok(()) => {
                    return ticket
                        .served
                        .set(users.round)
                        .map_err(|_| unreachable!("a ticket is served once"));
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
    /// In which round.
    served: OnceLock<u64>,
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
        let mut users = self.held.users();
        // Relaxed: see `lock_for`.
        self.ticket.left.store(true, Ordering::Relaxed);
        if let Some(round) = self.ticket.served.get() {
            users.leave(file, *round);
        }
    }
}
