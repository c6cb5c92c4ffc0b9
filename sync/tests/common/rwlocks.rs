//! What the tests of the read-write lock share.
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses what it needs; an expectation would fail in the one that uses all"
)]

use std::sync::Arc;

use fibra_runtime as fibra;
use fibra_sync::{RwLock, RwLockExt};

use crate::common::{guarded, runtime};

/// Both policies, for promises that do not depend on it.
pub(crate) fn both<T: Clone>(value: T) -> [Arc<RwLock<T>>; 2] {
    [Arc::new(RwLock::new(value.clone())), Arc::new(RwLock::writer_first(value))]
}

/// True while a waiter keeps readers out, though no writer is in.
pub(crate) fn door_is_closed<T>(lock: &RwLock<T>) -> bool {
    lock.try_read().is_none() && !lock.is_locked_exclusive()
}

pub(crate) fn assert_free<T>(lock: &RwLock<T>) {
    assert!(!lock.is_locked());
    drop(lock.try_write().expect("the lock is free and has no waiters"));
    drop(lock.try_read().expect("no writer waits"));
    drop(lock.try_upgradable_read().expect("the lock has no waiters"));
}

/// Runs `steps` as the first task of a single worker, where [`let_run`] is all it takes to know what the others do.
pub(crate) fn step_by_step(steps: impl Fn() + Send + Sync) {
    guarded(|| runtime(1).run(&steps));
}

/// Lets the other tasks of a single worker run as far as they can.
pub(crate) fn let_run() {
    (0..10).for_each(|_| fibra::yield_now());
}
