//! The runtimes of the process, for reports: an owner of a lock may belong to any of them.

#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::scheduler::block::Block;
use crate::scheduler::shared::Shared;
use crate::tasks::header::HomeWorker;

static ALL: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Adds a runtime.
pub(crate) fn add(shared: &Arc<Shared>) {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|one| one.strong_count() > 0);
    all.push(Arc::downgrade(shared));
}

/// Returns all runtimes that are alive.
pub(crate) fn all() -> Vec<Arc<Shared>> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().filter_map(Weak::upgrade).collect()
}

/// Returns the worker that tasks point to as their home.
pub(crate) fn block_of(runtimes: &[Arc<Shared>], home: *const HomeWorker) -> Option<&Arc<Block>> {
    runtimes.iter().flat_map(|shared| &shared.blocks).find(|block| block.as_home() == home)
}
