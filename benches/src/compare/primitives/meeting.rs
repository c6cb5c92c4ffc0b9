//! Many tasks that meet, round after round.

use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use super::pairs::Event;
use crate::compare::worlds::Blocking;

/// One task's part in all meetings.
pub(super) trait Party: Send + 'static {
    /// A part for each of so many tasks in so many meetings.
    fn of_all(tasks: usize, rounds: usize) -> Vec<Self>
    where
        Self: Sized;

    /// Comes to the next meeting, and waits for all others.
    fn meet(&mut self);
}

/// What so many tasks can meet at once.
pub(super) trait Gathering: Send + Sync + 'static {
    fn of(tasks: usize) -> Self;
    fn meet(&self);
}

/// A gathering for each round.
pub(super) struct Rounds<G> {
    all: Arc<[G]>,
    next: usize,
}

/// An event that stays set: the last to come sets it.
pub(super) struct Gate<E> {
    missing: AtomicUsize,
    event: E,
}

/// So many tasks meet until all of them together have come `operations` times.
pub(super) fn meet<T: Blocking, P: Party>(tasks: u64, operations: u64) -> Duration {
    let rounds = operations.div_ceil(tasks);
    let all = Arc::new(Barrier::new(tasks as usize + 1));
    let task = |mut party: P| {
        let all = Arc::clone(&all);
        move || {
            T::begin_together(&all);
            (0..rounds).for_each(|_| party.meet());
        }
    };
    let parties = P::of_all(tasks as usize, rounds as usize).into_iter();
    // SAFETY: what lives over a suspension are parties, which are `Send`, and counts.
    let handles: Vec<_> = parties.map(|party| unsafe { T::spawn(task(party)) }).collect();
    let begin = Instant::now();
    T::begin_together(&all);
    handles.into_iter().for_each(T::join);
    begin.elapsed()
}

impl<G: Gathering> Party for Rounds<G> {
    fn of_all(tasks: usize, rounds: usize) -> Vec<Self> {
        let all: Arc<[G]> = (0..rounds).map(|_| G::of(tasks)).collect();
        (0..tasks).map(|_| Rounds { all: Arc::clone(&all), next: 0 }).collect()
    }

    fn meet(&mut self) {
        self.all[self.next].meet();
        self.next += 1;
    }
}

impl<E: Event> Gathering for Gate<E> {
    fn of(tasks: usize) -> Self {
        Gate { missing: AtomicUsize::new(tasks), event: E::new() }
    }

    fn meet(&self) {
        // Acquire and Release: who is the last has seen all others come.
        match self.missing.fetch_sub(1, AcqRel) {
            1 => self.event.set(),
            _ => self.event.wait(),
        }
    }
}

/// Parties of a barrier that serves all rounds.
macro_rules! barrier {
    ($barrier:ty) => {
        impl Party for std::sync::Arc<$barrier> {
            fn of_all(tasks: usize, _rounds: usize) -> Vec<Self> {
                vec![std::sync::Arc::new(<$barrier>::new(tasks)); tasks]
            }

            fn meet(&mut self) {
                self.wait();
            }
        }
    };
}

pub(super) use barrier;
