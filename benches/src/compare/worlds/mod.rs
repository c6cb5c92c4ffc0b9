//! Where tasks run: what the questions need to know of it, once for tasks that block and once for tasks that wait by `await`.
//!
//! | file | holds |
//! | --- | --- |
//! | `fibra.rs`, `may.rs`, `threads.rs` | tasks that block |
//! | `tokio.rs`, `smol.rs` | tasks that wait by `await` |

pub(super) mod fibra;
pub(super) mod may;
pub(super) mod smol;
pub(super) mod threads;
pub(super) mod tokio;

use std::marker::PhantomData;
use std::sync::Barrier;
use std::time::Duration;

/// Tasks that block.
pub(super) trait Blocking: 'static {
    type Handle<T: Send + 'static>;
    type Task: Send + Sync + 'static;

    /// # Safety
    /// Over a suspension `f` keeps nothing that is tied to its thread, and it needs little stack.
    unsafe fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Self::Handle<T>;
    fn join<T: Send + 'static>(handle: Self::Handle<T>) -> T;
    fn yield_now();
    fn sleep(duration: Duration);
    fn current() -> Self::Task;
    fn task<T: Send + 'static>(handle: &Self::Handle<T>) -> Self::Task;
    fn park();
    fn unpark(task: &Self::Task);

    /// Waits until `all` are here, where those that were spawned first would otherwise be far ahead. Tasks are not: none
    /// runs on a worker before the task there that spawns them waits.
    fn begin_together(_all: &Barrier) {}
}

/// The way in to tasks that block.
pub(super) trait Enter {
    /// Runs `f` in a task and waits for its value.
    fn ask<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T;
}

/// Tasks that wait by `await`.
pub(super) trait Awaiting: 'static {
    type Handle<T: Send + 'static>: Send;
    type Signal: Signal;

    fn spawn<T: Send + 'static>(f: impl Future<Output = T> + Send + 'static) -> Self::Handle<T>;
    fn join<T: Send + 'static>(handle: Self::Handle<T>) -> impl Future<Output = T> + Send;
    fn detach(handle: Self::Handle<()>);
    fn yield_now() -> impl Future<Output = ()> + Send;
    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send;
}

/// What one task waits at until another has set it; set before the wait it stays set.
pub(super) trait Signal: Default + Send + Sync + 'static {
    fn set(&self);
    fn wait(&self) -> impl Future<Output = ()> + Send;
}

/// The ways in to tasks that wait by `await`.
pub(super) trait EnterAsync {
    /// Runs `f` in a task and waits for its value.
    fn ask<T: Send + 'static>(&self, f: impl Future<Output = T> + Send + 'static) -> T;

    /// Runs `f` on this thread alone.
    fn alone<T>(f: impl Future<Output = T>) -> T;
}

/// A library with tasks that block, started.
pub(super) struct Blocks<T, E> {
    pub(super) door: E,
    pub(super) workers: usize,
    tasks: PhantomData<T>,
}

/// A library with tasks that wait by `await`, started.
pub(super) struct Awaits<T, E> {
    pub(super) door: E,
    pub(super) workers: usize,
    tasks: PhantomData<T>,
}

impl<T, E> Blocks<T, E> {
    fn new(door: E, workers: usize) -> Self {
        Blocks { door, workers, tasks: PhantomData }
    }
}

impl<T, E> Awaits<T, E> {
    fn new(door: E, workers: usize) -> Self {
        Awaits { door, workers, tasks: PhantomData }
    }
}
