//! The questions for libraries whose tasks block.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use crate::comparison::{Answer, Rival};

use super::question::{BACKLOG, Question, THOUSAND};

/// What such a library offers.
pub(super) trait Tasks {
    type JoinHandle;
    type Task: Send + 'static;

    /// # Safety
    /// Over a suspension `f` keeps nothing that is tied to its thread, and it needs little stack.
    unsafe fn spawn<F: FnOnce() + Send + 'static>(f: F) -> Self::JoinHandle;
    fn join(handle: Self::JoinHandle);
    fn yield_now();
    fn current() -> Self::Task;
    fn task(handle: &Self::JoinHandle) -> Self::Task;
    fn park();
    fn unpark(task: &Self::Task);
}

/// Where such tasks run.
pub(super) trait Enter {
    /// Runs `f` in a task and waits for its value.
    fn enter(&self, f: impl FnOnce() -> Duration + Send + 'static) -> Duration;
}

/// A started library of this kind.
pub(super) struct Started<T, E> {
    door: E,
    tasks: PhantomData<T>,
}

impl<T, E> Started<T, E> {
    pub(super) fn new(door: E) -> Self {
        Started { door, tasks: PhantomData }
    }
}

impl<T: Tasks, E: Enter> Rival<Question> for Started<T, E> {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let elapsed = self.door.enter(move || match question {
            Question::YieldTwo => take_turns::<T>(2, operations),
            Question::YieldThousand => take_turns::<T>(THOUSAND, operations),
            Question::SpawnOne => spawn_one_by_one::<T>(operations),
            Question::SpawnMany => spawn_many::<T>(operations),
            Question::Park => hand_to_and_fro::<T>(operations),
        });
        elapsed.into()
    }
}

/// `tasks` tasks yield until all of them together have done so `operations` times.
fn take_turns<T: Tasks>(tasks: u64, operations: u64) -> Duration {
    let turns = operations.div_ceil(tasks);
    let begin = Instant::now();
    let yielding = move || (0..turns).for_each(|_| T::yield_now());
    // SAFETY: all that lives over a yield is the count.
    let handles: Vec<_> = (0..tasks).map(|_| unsafe { T::spawn(yielding) }).collect();
    handles.into_iter().for_each(T::join);
    share(begin.elapsed(), operations, turns * tasks)
}

fn spawn_one_by_one<T: Tasks>(operations: u64) -> Duration {
    let begin = Instant::now();
    for _ in 0..operations {
        // SAFETY: it is empty.
        T::join(unsafe { T::spawn(|| ()) });
    }
    begin.elapsed()
}

fn spawn_many<T: Tasks>(operations: u64) -> Duration {
    let rounds = operations.div_ceil(BACKLOG);
    let mut handles = Vec::with_capacity(BACKLOG as usize);
    let begin = Instant::now();
    for _ in 0..rounds {
        // SAFETY: it is empty.
        handles.extend((0..BACKLOG).map(|_| unsafe { T::spawn(|| ()) }));
        handles.drain(..).for_each(T::join);
    }
    share(begin.elapsed(), operations, rounds * BACKLOG)
}

fn hand_to_and_fro<T: Tasks>(operations: u64) -> Duration {
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

/// The share of `asked` operations in the time that `done` of them took; where they come in rounds more may be done.
pub(super) fn share(elapsed: Duration, asked: u64, done: u64) -> Duration {
    elapsed.mul_f64(asked as f64 / done as f64)
}
