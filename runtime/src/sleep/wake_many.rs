//! Wakes of many waiters.

#![forbid(unsafe_code)]

use std::hint::cold_path;

use crate::waiter::kind::{RawWake, call_waker};

/// Wakes all of `wakes` in order, and calls the wakers of futures once every wake has landed.
///
/// Such a waker may drop a future whose wake is among them, and the drop waits for the landing.
pub fn wake_each(wakes: impl IntoIterator<Item = RawWake>) {
    let mut wakers = Vec::new();
    for wake in wakes {
        if let Some(waker) = wake.land() {
            cold_path();
            wakers.push(waker);
        }
    }
    wakers.into_iter().for_each(call_waker);
}
