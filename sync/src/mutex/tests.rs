//! Counts the looks of unlocks at a waiter, which cannot be seen from outside.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use fibra_runtime::clock;
use lock_api::RawMutex as _;

use super::core::{Core, Given, HandOff, Policy, Waiter};
use super::raw::RawMutex;
use super::state::{Arrival, Attempt, Owner};
use crate::patience::PASSES_PER_LOOK;

/// Wakes the longest waiter, and counts the looks at woken waiters that have not come.
#[derive(Default)]
struct Counting {
    looks: Cell<u32>,
    is_overdue: Cell<bool>,
}

impl Policy for Counting {
    fn hand_off(&self, _first: &Waiter) -> HandOff {
        HandOff::Wake
    }

    fn wakes_another(&self, _since: Option<Instant>) -> bool {
        self.looks.set(self.looks.get() + 1);
        self.is_overdue.get()
    }
}

fn owner(number: usize) -> Owner {
    NonNull::new(ptr::without_provenance_mut(number * 8)).expect("numbers begin with 1")
}

/// Starts a thread that waits, and returns once it is in the queue.
fn arrive<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    core: &'env Core,
    number: usize,
    limit: Option<Duration>,
) -> ScopedJoinHandle<'scope, Option<Given>> {
    let queued = Arc::new(AtomicBool::new(false));
    let published = Arc::clone(&queued);
    let waits = scope.spawn(move || {
        let deadline = limit.map(|limit| clock::now() + limit);
        let waiter = Waiter::new(owner(number), None);
        core.wait(waiter, Arrival::New, deadline, || published.store(true, Ordering::Release)).0
    });
    while !queued.load(Ordering::Acquire) {
        thread::yield_now();
    }
    waits
}

#[test]
fn the_first_unlock_after_an_arrival_looks_at_the_waiter_however_many_went_before() {
    let (core, policy) = (Core::new(), Counting::default());
    let me = owner(1);
    assert_eq!(core.word().take(me, Arrival::New), Attempt::Taken);
    let section = || {
        core.release(&policy);
        assert_eq!(core.word().take(me, Arrival::New), Attempt::Taken);
    };
    thread::scope(|scope| {
        // It is woken, and does not come.
        let woken = arrive(scope, &core, 2, None);
        section();
        assert_eq!(woken.join().unwrap(), Some(Given::Wake));
        let short = arrive(scope, &core, 3, Some(Duration::from_millis(300)));
        (0..PASSES_PER_LOOK).for_each(|_| section());
        assert!(policy.looks.get() <= 7, "1, 2, 4, 8, 16, 32, 64: {}", policy.looks.get());
        assert_eq!(short.join().unwrap(), None);

        let late = arrive(scope, &core, 4, None);
        policy.looks.set(0);
        section();
        assert_eq!(policy.looks.get(), 1);
        policy.is_overdue.set(true);
        section();
        assert_eq!(late.join().unwrap(), Some(Given::Wake));
    });
}

#[test]
fn a_thread_that_falls_asleep_wakes_a_waiter_though_another_one_is_on_its_way() {
    let mutex = RawMutex::INIT;
    thread::scope(|scope| {
        mutex.lock();
        let woken = arrive(scope, mutex.core(), 2, None);
        mutex.release();
        assert_eq!(woken.join().unwrap(), Some(Given::Wake), "and it does not come");
        mutex.lock();
        let next = arrive(scope, mutex.core(), 3, None);
        mutex.release_to_sleep();
        assert_eq!(next.join().unwrap(), Some(Given::Wake));
    });
}
