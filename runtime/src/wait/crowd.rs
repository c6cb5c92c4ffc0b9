//! Waking many.

use std::iter::once;
use std::task::Waker;

use super::waiter::call;
use super::{Lock, RawWake};

/// How many are taken under one hold of the lock.
const BATCH: usize = 32;

/// Wakes everybody whom `next` hands out, until it hands out nobody.
///
/// `next` runs under the lock and the wakes after it, a batch at a time, so that the lock is never held for long and no
/// list is ever reached without it. Who enters meanwhile is seen by `next` as well: where that must not be, nodes carry
/// the round that they came in.
pub fn wake_all<S>(lock: &Lock<S>, mut next: impl FnMut(&mut S) -> Option<RawWake>) {
    loop {
        let mut batch = [const { None }; BATCH];
        let mut taken = 0;
        {
            let mut state = lock.lock();
            while taken < BATCH
                && let Some(wake) = next(&mut state)
            {
                batch[taken] = Some(wake);
                taken += 1;
            }
        }
        let mut wakes = batch.into_iter().flatten();
        if let Some(waker) = wakes.find_map(RawWake::land) {
            call_after(waker, wakes);
        }
        if taken < BATCH {
            return;
        }
    }
}

/// Wakes all of them, in their order. The wakers of futures are called once every wake has landed.
pub fn wake_each(wakes: impl IntoIterator<Item = RawWake>) {
    let mut wakes = wakes.into_iter();
    if let Some(waker) = wakes.find_map(RawWake::land) {
        let wakers: Vec<Waker> = once(waker).chain(wakes.filter_map(RawWake::land)).collect();
        wakers.into_iter().for_each(call);
    }
}

/// Lands the other wakes of the batch before it calls the wakers of futures: one of those may drop a future whose wake is
/// among them, and such a drop waits for the landing.
#[cold]
fn call_after(first: Waker, others: impl Iterator<Item = RawWake>) {
    let mut wakers = [const { None }; BATCH];
    let all = once(first).chain(others.filter_map(RawWake::land));
    wakers.iter_mut().zip(all).for_each(|(place, waker)| *place = Some(waker));
    wakers.into_iter().flatten().for_each(call);
}
