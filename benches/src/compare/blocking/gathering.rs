//! The primitives that many tasks meet at. One that serves once is made for each round.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};

use super::asked::meeting::Party;
use super::asked::pairs::Event;
use crate::compare::primitives::question::Meeting;

/// A primitive at which so many tasks meet once.
pub(super) trait Gathering: Send + Sync + 'static {
    const MEETING: Meeting;

    fn of(tasks: usize) -> Self;
    fn meet(&self);
}

/// A gathering for each round.
pub(super) struct Rounds<G> {
    all: Arc<[G]>,
    next: usize,
}

impl<G: Gathering> Party for Rounds<G> {
    const MEETING: Meeting = G::MEETING;

    fn of_all(tasks: usize, rounds: usize) -> Vec<Self> {
        let all: Arc<[G]> = (0..rounds).map(|_| G::of(tasks)).collect();
        (0..tasks).map(|_| Rounds { all: Arc::clone(&all), next: 0 }).collect()
    }

    fn meet(&mut self) {
        self.all[self.next].meet();
        self.next += 1;
    }
}

/// An event that stays set: the last to come sets it.
pub(super) struct Gate<E> {
    missing: AtomicUsize,
    event: E,
}

impl<E: Event> Gathering for Gate<E> {
    const MEETING: Meeting = Meeting::ManualEvent;

    fn of(tasks: usize) -> Self {
        Gate { missing: AtomicUsize::new(tasks), event: E::new() }
    }

    fn meet(&self) {
        // Acquire and Release: the last task has seen all others come.
        match self.missing.fetch_sub(1, AcqRel) {
            1 => self.event.set(),
            _ => self.event.wait(),
        }
    }
}

/// Events: what each is, how it is made, and the methods that set it and wait at it.
macro_rules! events {
    ($($event:ty = $new:expr, $set:ident, $wait:ident;)+) => {
        $(
            impl Event for $event {
                fn new() -> Self {
                    $new
                }

                #[inline(always)]
                fn set(&self) {
                    <$event>::$set(self);
                }

                #[inline(always)]
                fn wait(&self) {
                    <$event>::$wait(self);
                }
            }
        )+
    };
}

pub(super) use events;
