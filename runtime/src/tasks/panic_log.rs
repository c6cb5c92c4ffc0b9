//! The panics of a runtime's tasks that no caller has observed, for tests.
//!
//! A panic enters the log of the runtime where its task ends. It leaves when the [`JoinError`] that carries it is dropped, or
//! gives its payload away: a caller had the error then. The error of a task whose handle is dropped stays in the log, and so does
//! one that lies in a handle for ever.
//!
//! [`JoinError`]: crate::tasks::join_error::JoinError

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Collects the panics of a runtime's tasks that no caller has observed, by the ids of the tasks.
#[derive(Clone, Default, Debug)]
pub struct PanicLog(Arc<Mutex<BTreeMap<u64, String>>>);

thread_local! {
    /// The log of the runtime that this thread belongs to, if it keeps one.
    static LOG: RefCell<Option<PanicLog>> = const { RefCell::new(None) };
}

/// Sets the log of this thread, and returns the one that it replaces.
pub(crate) fn replace(log: Option<PanicLog>) -> Option<PanicLog> {
    LOG.replace(log)
}

impl PanicLog {
    /// Returns the id of each task that panicked, in their order, and what is to be said of it.
    pub fn unobserved(&self) -> impl Iterator<Item = (u64, String)> + use<> {
        self.lock().clone().into_iter()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A panic in a log, which it leaves when this is dropped.
pub(crate) struct Entry {
    log: PanicLog,
    id: u64,
    stays: bool,
}

impl Entry {
    /// Enters the panic of a task into the log of this thread, if there is one.
    #[inline(never)]
    pub(crate) fn new(id: u64, text: impl FnOnce() -> String) -> Option<Entry> {
        let log = LOG.try_with(|log| log.borrow().clone()).ok()??;
        log.lock().insert(id, text());
        Some(Entry { log, id, stays: false })
    }

    /// Leaves the panic in the log: no caller has observed it.
    pub(crate) fn stay(&mut self) {
        self.stays = true;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.stays {
            self.log.lock().remove(&self.id);
        }
    }
}
