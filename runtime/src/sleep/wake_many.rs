//! Wakes of whole lists, in batches.

#![forbid(unsafe_code)]

use std::hint::cold_path;
use std::iter::once;
use std::task::Waker;

use crate::base::spin_lock::Lock;
use crate::waiter::kind::{RawWake, call_waker};
use crate::waiter::list::List;

/// Wakes taken under one hold of the lock.
const BATCH: usize = 32;

/// Wakes all waiters that `next` returns, until it returns `None`.
///
/// `next` runs under the lock and the wakes after it, a batch at a time. So the lock is never held
/// for long, and no list is touched without it. `next` also sees waiters that arrive meanwhile.
/// Where it must not, let nodes carry the round of their arrival, or use [`wake_present`].
pub fn wake_all<S, B>(lock: &Lock<S, B>, mut next: impl FnMut(&mut S) -> Option<RawWake>) {
    loop {
        let mut batch;
        let mut taken = 1;
        {
            let mut state = lock.lock();
            // Mostly there is no waiter, so the array is not written before the first.
            let Some(first) = next(&mut state) else { return };
            batch = [const { None }; BATCH];
            batch[0] = Some(first);
            while taken < BATCH
                && let Some(wake) = next(&mut state)
            {
                batch[taken] = Some(wake);
                taken += 1;
            }
        }
        let mut wakes = batch.into_iter().flatten();
        if let Some(waker) = wakes.find_map(|wake| wake.land()) {
            call_after(waker, wakes);
        }
        if taken < BATCH {
            return;
        }
    }
}

/// Wakes all waiters that are in the list now.
///
/// A waiter that arrives meanwhile sleeps on, unless an earlier waiter leaves by itself: then it
/// may be woken instead.
pub fn wake_present<S, B, T>(lock: &Lock<S, B>, list: impl Fn(&mut S) -> &mut List<T>) {
    let mut left = None;
    wake_all(lock, |state| {
        let list = list(state);
        let left = left.get_or_insert_with(|| list.len());
        *left = left.checked_sub(1)?;
        list.pop_front()
    });
}

/// Wakes all of `wakes` in order, and calls the wakers of futures once every wake has landed.
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

/// Lands the remaining wakes of the batch, then calls the wakers of futures.
///
/// Such a waker may drop a future whose wake is in the batch, and the drop waits for the landing.
#[cold]
fn call_after(first: Waker, others: impl Iterator<Item = RawWake>) {
    let mut wakers = [const { None }; BATCH];
    let all = once(first).chain(others.filter_map(|wake| wake.land()));
    wakers.iter_mut().zip(all).for_each(|(place, waker)| *place = Some(waker));
    wakers.into_iter().flatten().for_each(call_waker);
}
