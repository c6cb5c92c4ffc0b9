//! Waking many.

#![forbid(unsafe_code)]

use std::hint::cold_path;
use std::iter::once;
use std::task::Waker;

use crate::base::spin_lock::Lock;
use crate::waiter::kind::{RawWake, call_waker};
use crate::waiter::list::List;

/// How many are taken under one hold of the lock.
const BATCH: usize = 32;

/// Wakes everybody whom `next` hands out, until it hands out nobody.
///
/// `next` runs under the lock and the wakes after it, a batch at a time, so that the lock is never held for long and no
/// list is ever reached without it. Who enters meanwhile is seen by `next` as well: where that must not be, nodes carry
/// the round that they came in, or it is [`wake_present`].
pub fn wake_all<S>(lock: &Lock<S>, mut next: impl FnMut(&mut S) -> Option<RawWake>) {
    loop {
        let mut batch;
        let mut taken = 1;
        {
            let mut state = lock.lock();
            // Mostly there is nobody, who needs no room.
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

/// Wakes everybody who is in the list now. Who enters meanwhile sleeps on, unless somebody before it leaves by itself: then it
/// may be woken in its place.
pub fn wake_present<S, T>(lock: &Lock<S>, list: impl Fn(&mut S) -> &mut List<T>) {
    let mut left = None;
    wake_all(lock, |state| {
        let list = list(state);
        let left = left.get_or_insert_with(|| list.len());
        *left = left.checked_sub(1)?;
        list.pop_front()
    });
}

/// Wakes all of them, in their order. The wakers of futures are called once every wake has landed.
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

/// Lands the other wakes of the batch before it calls the wakers of futures: one of those may drop a future whose wake is
/// among them, and such a drop waits for the landing.
#[cold]
fn call_after(first: Waker, others: impl Iterator<Item = RawWake>) {
    let mut wakers = [const { None }; BATCH];
    let all = once(first).chain(others.filter_map(|wake| wake.land()));
    wakers.iter_mut().zip(all).for_each(|(place, waker)| *place = Some(waker));
    wakers.into_iter().flatten().for_each(call_waker);
}
