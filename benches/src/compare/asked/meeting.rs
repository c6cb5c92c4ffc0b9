//! Many tasks that meet, round after round.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use super::super::{Job, Tasks};
use crate::compare::primitives::question::Meeting;

/// One task's part in all meetings.
pub(in crate::compare) trait Party: Send + Sized + 'static {
    /// What the tasks meet at.
    const MEETING: Meeting;

    /// A part for each of so many tasks in so many meetings.
    fn of_all(tasks: usize, rounds: usize) -> Vec<Self>;

    /// Comes to the next meeting, and waits for all others.
    fn meet(&mut self) -> later!(());
}

/// Has so many tasks meet until all of them together have come `operations` times.
pub(super) fn meet<T: Tasks, P: Party>(tasks: u64, operations: u64) -> impl Job<Duration> {
    let rounds = operations.div_ceil(tasks);
    job!({
        let all = Arc::new(Barrier::new(tasks as usize + 1));
        let task = |mut party: P| {
            let all = Arc::clone(&all);
            job!({
                T::begin_together(&all);
                for _ in 0..rounds {
                    wait!(party.meet());
                }
            })
        };
        let parties = P::of_all(tasks as usize, rounds as usize).into_iter();
        let handles: Vec<_> = parties.map(|party| T::spawn(task(party))).collect();
        let begin = Instant::now();
        T::begin_together(&all);
        join_all!(T, handles);
        begin.elapsed()
    })
}
