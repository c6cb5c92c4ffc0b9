//! Counts what was made and what was dropped, so that an end of a runtime can be checked to have run all destructors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use fibra_runtime::task;

#[derive(Default)]
pub(crate) struct Ledger {
    made: AtomicUsize,
    dropped: AtomicUsize,
    /// What went wrong, in words.
    wrongs: Mutex<Vec<String>>,
}

/// Something with a destructor that the ledger knows of.
pub(crate) struct Entry {
    ledger: Arc<Ledger>,
    /// Where it has to be dropped, if anywhere.
    home: Option<ThreadId>,
    in_task: bool,
}

impl Ledger {
    fn entry_of(self: &Arc<Self>, home: Option<ThreadId>, in_task: bool) -> Entry {
        self.made.fetch_add(1, Ordering::SeqCst);
        Entry { ledger: Arc::clone(self), home, in_task }
    }

    pub(crate) fn entry(self: &Arc<Self>) -> Entry {
        self.entry_of(None, false)
    }

    /// One that a task drops.
    pub(crate) fn entry_of_a_task(self: &Arc<Self>) -> Entry {
        self.entry_of(None, true)
    }

    /// One that a task of this very thread drops.
    pub(crate) fn entry_at_home(self: &Arc<Self>) -> Entry {
        self.entry_of(Some(thread::current().id()), true)
    }

    pub(crate) fn wrong(&self, what: impl Into<String>) {
        let mut wrongs = self.wrongs.lock().unwrap();
        // One thing that is wrong is mostly wrong thousands of times.
        if wrongs.len() < 20 {
            wrongs.push(what.into());
        }
    }

    /// True when everything was dropped.
    pub(crate) fn is_even(&self) -> bool {
        self.dropped.load(Ordering::SeqCst) == self.made.load(Ordering::SeqCst)
    }

    pub(crate) fn wait_until_even(&self) {
        while !self.is_even() {
            thread::sleep(Duration::from_micros(200));
        }
    }

    pub(crate) fn check(&self) {
        let wrongs = self.wrongs.lock().unwrap();
        assert!(wrongs.is_empty(), "{wrongs:?}");
        let (made, dropped) = (self.made.load(Ordering::SeqCst), self.dropped.load(Ordering::SeqCst));
        assert_eq!(dropped, made, "destructors run");
        assert!(made > 0);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.in_task && task::try_current().is_none() {
            self.ledger.wrong(format!("dropped outside a task, on {:?}", thread::current().name()));
        }
        if self.home.is_some_and(|home| home != thread::current().id()) {
            self.ledger.wrong("dropped away from home");
        }
        self.ledger.dropped.fetch_add(1, Ordering::SeqCst);
    }
}
