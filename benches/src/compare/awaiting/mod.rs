//! Tasks that wait by `await`, and the questions as they are asked of them.
//!
//! The macros say what a wait is here: an `await`. The text of `asked` is compiled with them.

/// Waits for a future.
macro_rules! wait {
    ($value:expr) => {
        $value.await
    };
}

/// The type of a call that waits.
macro_rules! later {
    ($value:ty) => {
        impl Future<Output = $value> + Send
    };
}

/// The body of a call that waits.
macro_rules! body {
    ($body:block) => {
        async move $body
    };
}

/// The job of a task.
macro_rules! job {
    ($body:block) => {
        async move $body
    };
}

/// Does a job in the calling task.
macro_rules! run {
    ($job:expr) => {
        $job.await
    };
}

#[macro_use]
#[path = "../asked/mod.rs"]
pub(super) mod asked;
mod flume;
mod smol;
mod tokio;

use std::pin::Pin;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use asked::alone::Deed;
use asked::crowd::{Lock, Permits, ReadLock};
use asked::library::{self, Library, Thing};
use asked::meeting::Party;
use asked::pairs::{Channel, Choice, Event, Oneshot, Request};
pub(super) use flume::Flume;

/// The job of a task.
pub(super) trait Job<T>: Future<Output = T> + Send + 'static {}

impl<T, F: Future<Output = T> + Send + 'static> Job<T> for F {}

pub(super) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(super) fn boxed<T>(job: impl Job<T>) -> Boxed<T> {
    Box::pin(job)
}

/// What a task may keep while it waits: it may go on in another thread.
pub(super) trait Held: Send {}

impl<T: Send> Held for T {}

/// Tasks that wait by `await`.
pub(super) trait Tasks: Sized + 'static {
    type Handle<T: Send + 'static>: Send;
    type Signal: Event;

    fn spawn<T: Send + 'static>(job: impl Job<T>) -> Self::Handle<T>;

    /// Spawns the second task of a pair.
    fn spawn_beside(job: impl Job<()>) -> Self::Handle<()> {
        Self::spawn(job)
    }

    fn join<T: Send + 'static>(handle: Self::Handle<T>) -> impl Future<Output = T> + Send;
    fn detach(handle: Self::Handle<()>);
    fn yield_now() -> impl Future<Output = ()> + Send;
    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send;

    /// Does nothing: no task is far ahead of another.
    fn begin_together(_all: &Barrier) {}
}

type Signal<T> = <T as Tasks>::Signal;

/// The ways in to tasks from a plain thread.
pub(super) trait Enter {
    /// Runs the job in a task and waits for its value.
    fn ask<T: Send + 'static>(&self, job: impl Job<T>) -> T;

    /// Runs two jobs, each on a processor of its own, and returns the value of the first.
    fn ask_apart(&self, first: Boxed<Duration>, second: Boxed<()>) -> Duration;
}

/// Two tasks park and unpark each other by a signal for each.
fn hand_to_and_fro<T: Tasks>(operations: u64) -> impl Job<Duration> {
    async move {
        let (ours, theirs) = (Arc::new(T::Signal::new()), Arc::new(T::Signal::new()));
        let (asking, asked) = (Arc::clone(&ours), Arc::clone(&theirs));
        let other = T::spawn(async move {
            for _ in 0..operations {
                asked.wait().await;
                asking.set();
            }
        });
        let begin = Instant::now();
        for _ in 0..operations {
            theirs.set();
            ours.wait().await;
        }
        let elapsed = begin.elapsed();
        T::join(other).await;
        elapsed
    }
}

/// A library that has nearly all that is asked about. None has a channel without slots.
trait Most: Tasks {
    type Mutex: Deed + Lock;
    type RwLock: ReadLock;
    type Semaphore: Permits;
    /// A channel of one slot.
    type One: Channel<u64>;
    /// A channel of 128 slots.
    type Slots: Choice + Channel<Request<Self::Once>>;
    type Unbounded: Channel<u64>;
    type Once: Oneshot;
    type OnceCell: Deed;
    type Barrier: Deed + Party;

    /// Primitives that some lack.
    const OWN: Thing;
}

impl<L: Most> Library<L> for L {
    const THINGS: &'static [Thing] = &[
        library::mutex::<L, L::Mutex>,
        library::read_write::<L, L::RwLock>,
        library::semaphore::<L, L::Semaphore>,
        library::event::<L::Signal>,
        library::shared_event::<L, L::Signal>,
        library::one_slot::<L::One>,
        library::slots::<L::Slots>,
        library::more_slots::<L, L::Slots>,
        library::unbounded::<L::Unbounded>,
        library::select::<L, L::Slots>,
        library::oneshot::<L::Slots, L::Once>,
        library::deed::<L::Mutex>,
        library::deed::<L::OnceCell>,
        library::deed::<L::Barrier>,
        library::meeting::<L, L::Barrier>,
        L::OWN,
    ];
}
