//! The plain threads that have taken locks, for reports of owners.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::waiter::description::OwnerMark;

/// A thread, as an owner.
struct Entry {
    address: usize,
    name: Option<String>,
}

/// By number.
static THREADS: Mutex<BTreeMap<u64, Entry>> = Mutex::new(BTreeMap::new());

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

fn threads() -> MutexGuard<'static, BTreeMap<u64, Entry>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Enters the calling thread: by its number, and by the address that stands for it. Once a thread.
///
/// A thread that drops its thread-locals is left out.
pub(crate) fn enter(number: u64, address: usize) {
    if LEAVE.try_with(|leave| leave.0.set(number)).is_ok() {
        let name = thread::current().name().map(str::to_owned);
        threads().insert(number, Entry { address, name });
    }
}

/// Finds the number and the name of a thread that owns something.
pub(crate) fn find(owner: OwnerMark) -> Option<(u64, Option<String>)> {
    let threads = threads();
    let (number, entry) = match owner {
        OwnerMark::Number(number) => threads.get_key_value(&number),
        OwnerMark::Address(address) => threads.iter().find(|(_, entry)| entry.address == address),
    }?;
    Some((*number, entry.name.clone()))
}
