//! The questions for libraries whose tasks block.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant};

use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::worlds::{Blocking, Blocks, Enter};

use super::question::Question;
use super::share;

impl<T: Blocking, E: Enter> Rival<Question> for Blocks<T, E> {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let elapsed = self.door.ask(move || match question {
            Question::Switch => take_turns::<T>(1, operations),
            Question::Yield(tasks) => take_turns::<T>(tasks.into(), operations),
            Question::SpawnOne => spawn_one_by_one::<T>(operations),
            Question::SpawnMany(tasks) => spawn_many::<T>(tasks.into(), operations),
            Question::Chain => spawn_in_a_chain::<T>(operations),
            Question::Park => hand_to_and_fro::<T>(operations),
        });
        elapsed.into()
    }
}

/// `tasks` tasks yield until all of them together have done so `operations` times. Nobody waits until all are there: of
/// may's coroutines those that yield keep the others from ever beginning.
fn take_turns<T: Blocking>(tasks: u64, operations: u64) -> Duration {
    let turns = operations.div_ceil(tasks);
    let begin = Instant::now();
    let yielding = move || (0..turns).for_each(|_| T::yield_now());
    // SAFETY: all that lives over a yield is the count.
    let handles: Vec<_> = (0..tasks).map(|_| unsafe { T::spawn(yielding) }).collect();
    handles.into_iter().for_each(T::join);
    share(begin.elapsed(), operations, turns * tasks)
}

fn spawn_one_by_one<T: Blocking>(operations: u64) -> Duration {
    let begin = Instant::now();
    for _ in 0..operations {
        // SAFETY: it is empty.
        T::join(unsafe { T::spawn(|| ()) });
    }
    begin.elapsed()
}

fn spawn_many<T: Blocking>(tasks: u64, operations: u64) -> Duration {
    let rounds = operations.div_ceil(tasks);
    let mut handles = Vec::with_capacity(tasks as usize);
    let begin = Instant::now();
    for _ in 0..rounds {
        // SAFETY: it is empty.
        handles.extend((0..tasks).map(|_| unsafe { T::spawn(|| ()) }));
        handles.drain(..).for_each(T::join);
    }
    share(begin.elapsed(), operations, rounds * tasks)
}

/// Who waits for the end of a chain, and whether it is there.
struct End<T: Blocking> {
    waiter: T::Task,
    is_here: AtomicBool,
}

fn spawn_in_a_chain<T: Blocking>(operations: u64) -> Duration {
    let end = Arc::new(End::<T> { waiter: T::current(), is_here: AtomicBool::new(false) });
    let begin = Instant::now();
    link(operations, Arc::clone(&end));
    // Acquire: pairs with the Release in `link`.
    while !end.is_here.load(Acquire) {
        T::park();
    }
    begin.elapsed()
}

fn link<T: Blocking>(left: u64, end: Arc<End<T>>) {
    match left {
        0 => {
            // Release: pairs with the Acquire in `spawn_in_a_chain`.
            end.is_here.store(true, Release);
            T::unpark(&end.waiter);
        }
        // SAFETY: it does not suspend itself. Nobody joins it.
        _ => drop(unsafe { T::spawn(move || link(left - 1, end)) }),
    }
}

fn hand_to_and_fro<T: Blocking>(operations: u64) -> Duration {
    let this = T::current();
    let answering = move || {
        for _ in 0..operations {
            T::park();
            T::unpark(&this);
        }
    };
    // SAFETY: what lives over a park is a count and a handle, which is `Send`.
    let other = unsafe { T::spawn(answering) };
    let task = T::task(&other);
    let begin = Instant::now();
    for _ in 0..operations {
        T::unpark(&task);
        T::park();
    }
    let elapsed = begin.elapsed();
    T::join(other);
    elapsed
}
