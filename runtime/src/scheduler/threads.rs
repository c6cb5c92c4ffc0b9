//! The plain threads that have taken locks, for reports of owners.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::base::sys;
use crate::waiter::description::OwnerMark;

/// A thread, as an owner.
#[derive(Clone)]
pub(crate) struct OwnerThread {
    pub(crate) number: u64,
    address: usize,
    pub(crate) name: Option<String>,
    /// The system's number of the thread.
    pub(crate) thread: Option<i32>,
}

/// By number.
static THREADS: Mutex<BTreeMap<u64, OwnerThread>> = Mutex::new(BTreeMap::new());

thread_local! {
    static LEAVE: Leave = const { Leave(Cell::new(0)) };
}

/// Removes the entry of the thread at its end.
struct Leave(Cell<u64>);

impl Drop for Leave {
    fn drop(&mut self) {
        threads().remove(&self.0.get());
    }
}

fn threads() -> MutexGuard<'static, BTreeMap<u64, OwnerThread>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Enters the calling thread: by its number, and by the address that stands for it. Once a thread.
///
/// A thread that drops its thread-locals is left out.
pub(crate) fn enter(number: u64, address: usize) {
    if LEAVE.try_with(|leave| leave.0.set(number)).is_ok() {
        let name = thread::current().name().map(str::to_owned);
        threads().insert(number, OwnerThread { number, address, name, thread: sys::thread_id() });
    }
}

/// Finds a thread that owns something.
pub(crate) fn find(owner: OwnerMark) -> Option<OwnerThread> {
    let threads = threads();
    let found = match owner {
        OwnerMark::Number(number) => threads.get(&number),
        OwnerMark::Address(address) => threads.values().find(|thread| thread.address == address),
    };
    found.cloned()
}
