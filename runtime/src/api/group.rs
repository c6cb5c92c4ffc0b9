//! `TaskGroup`: a growing set of tasks, joined in the order of their ends.
//!
//! The group keeps the handles of its members: of those that run by key, of those that have ended in
//! the order of their ends. A hook in each task moves its handle at its end.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::mem::{self, offset_of};
use std::panic::Location;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use slab::Slab;

use crate::api::builder::Builder;
use crate::api::group_error::{GroupError, StillRunning};
use crate::api::join_handle::JoinHandle;
use crate::api::sleep;
use crate::scheduler::budget;
use crate::scheduler::simulated::point;
use crate::sleep::cancel_points;
use crate::sleep::queue::WaitQueue;
use crate::sleep::queue::wait::{Admit, Outcome, Until};
use crate::sleep::queue::waiters::Waiters;
use crate::tasks::header::{Container, TaskRef};
use crate::tasks::join_error::JoinError;
use crate::tasks::raw::TaskHooks;
use crate::tasks::shield::Shielded;
use crate::tasks::task::Task;
use crate::waiter::description::WaitDescription;

/// Owns a set of tasks, and yields their results in the order of their ends.
///
/// Several tasks and threads may spawn and join at once. The tasks are `'static`; for tasks that
/// borrow there is [`scope`](crate::scope). Dropping the group cancels its tasks and does not wait
/// for them.
///
/// # Fairness
/// Waiters for a result are woken first in, first out, and an arrival may overtake a woken waiter.
/// Spawns that wait for the limit are served first in, first out.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let group = fibra::TaskGroup::new();
/// for n in [3, 1, 2] {
///     group.spawn(move || {
///         (0..n).for_each(|_| fibra::yield_now());
///         n
///     });
/// }
/// let ended: Vec<u64> = std::iter::from_fn(|| group.join_next()).map(Result::unwrap).collect();
/// assert_eq!(ended, [1, 2, 3]);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Its tasks may not borrow:
/// ```compile_fail,E0373
/// # use fibra_runtime as fibra;
/// let group = fibra::TaskGroup::new();
/// let text = String::from("here");
/// group.spawn(|| text.len());
/// ```
pub struct TaskGroup<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    /// Each waiter of the lane `SPAWNERS` gets the key of its place.
    queue: WaitQueue<State<T>, usize, 2>,
    limit: usize,
}

/// The lane of tasks that wait for a result.
const JOINERS: usize = 0;
/// The lane of tasks that wait for a place.
const SPAWNERS: usize = 1;

struct State<T> {
    /// Members that count against the limit, by key.
    running: Slab<Place<T>>,
    /// Members that have ended and are not joined.
    ended: VecDeque<Ended<T>>,
    /// How many places were taken so far.
    spawned: u64,
}

/// A running member: the number of its spawn, and its stage.
struct Place<T> {
    number: u64,
    stage: Stage<T>,
}

enum Stage<T> {
    Spawning,
    Running(JoinHandle<T>),
    /// Ended before its spawner has left the handle here.
    EndedEarly,
}

/// The handle of an ended task, with the number of its spawn.
type Ended<T> = (u64, JoinHandle<T>);

/// Tells the group of the end of a member.
struct Member<T> {
    shared: Arc<Shared<T>>,
    key: usize,
}

impl<T> TaskHooks for Member<T> {
    const AWAITS: bool = true;
    const CONTAINER: Option<Container> = Some(Container {
        kind: "group",
        pointer: offset_of!(Member<T>, shared),
        // The counts of the `Arc` lie before it.
        size: size_of::<([usize; 2], Shared<T>)>(),
        owner: None,
    });

    fn made(&self, _task: TaskRef) {}

    fn ended(&self) {
        self.shared.queue.with(|state, waiters| {
            // A group that was dropped has none of its places left.
            let Some(place) = state.running.get_mut(self.key) else { return };
            if let Stage::Running(handle) = mem::replace(&mut place.stage, Stage::EndedEarly) {
                state.end(self.key, handle, waiters);
            }
        });
    }
}

/// Gives the place of a spawn back that unwinds.
struct Occupied<'a, T> {
    shared: &'a Shared<T>,
    key: usize,
}

impl<T> Drop for Occupied<'_, T> {
    fn drop(&mut self) {
        self.shared.queue.with(|state, waiters| {
            state.vacate(self.key, waiters);
            state.wake_if_empty(waiters);
        });
    }
}

impl<T> State<T> {
    fn len(&self) -> usize {
        self.running.len() + self.ended.len()
    }

    /// Takes a place for a spawn, and returns its key.
    fn occupy(&mut self) -> usize {
        self.spawned += 1;
        self.running.insert(Place { number: self.spawned, stage: Stage::Spawning })
    }

    /// Empties a place, and hands it to the next spawner that waits. Returns the number of its spawn.
    fn vacate(&mut self, key: usize, waiters: &mut Waiters<'_, usize, 2>) -> u64 {
        let place = self.running.remove(key);
        waiters.serve_front(SPAWNERS, |key| *key = self.occupy());
        place.number
    }

    fn end(&mut self, key: usize, handle: JoinHandle<T>, waiters: &mut Waiters<'_, usize, 2>) {
        let number = self.vacate(key, waiters);
        self.ended.push_back((number, handle));
        waiters.serve_front(JOINERS, |_| ());
    }

    /// Wakes all joiners if there is nothing left to wait for.
    fn wake_if_empty(&self, waiters: &mut Waiters<'_, usize, 2>) {
        if self.len() == 0 {
            waiters.serve_all(JOINERS);
        }
    }
}

impl<T> TaskGroup<T> {
    /// Makes an empty group that takes any number of tasks.
    pub fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// Makes an empty group that runs at most `limit` tasks at once.
    ///
    /// A further spawn waits.
    ///
    /// # Panics
    /// Panics when `limit` is 0.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let group = fibra::TaskGroup::with_limit(2);
    /// for n in 0..10 {
    ///     group.spawn(move || n);
    /// }
    /// assert_eq!(group.join_all().len(), 10);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn with_limit(limit: usize) -> Self {
        assert!(limit > 0, "a group with a limit of 0 would never run anything");
        let state = State { running: Slab::new(), ended: VecDeque::new(), spawned: 0 };
        TaskGroup { shared: Arc::new(Shared { queue: WaitQueue::new(state), limit }) }
    }

    /// Returns how many tasks run or have an untaken result.
    ///
    /// It counts against the operation budget, so the caller may yield: a loop over it lets other tasks
    /// run.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let group = fibra::TaskGroup::new();
    /// assert!(group.is_empty());
    /// group.spawn(|| 1);
    /// assert_eq!(group.len(), 1);
    /// group.join_next();
    /// assert!(group.is_empty());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        budget::charge();
        self.shared.queue.with(|state, _| state.len())
    }

    /// Returns true when no task runs or has an untaken result.
    ///
    /// The caller may yield, as in [`len`](TaskGroup::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cancels all running tasks.
    ///
    /// Their results, mostly errors with `is_cancelled`, remain to be joined. Tasks that are
    /// spawned later are not cancelled.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let group = fibra::TaskGroup::new();
    /// group.spawn(fibra::task::park);
    /// group.cancel_all();
    /// assert!(group.join_next().unwrap().unwrap_err().is_cancelled());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn cancel_all(&self) {
        self.running().iter().for_each(Task::cancel);
    }

    /// Returns handles to all members that have not ended.
    fn running(&self) -> Vec<Task> {
        let task = |(_, place): (usize, &Place<T>)| match &place.stage {
            Stage::Running(handle) => Some(handle.task().clone()),
            Stage::Spawning | Stage::EndedEarly => None,
        };
        self.shared.queue.with(|state, _| state.running.iter().filter_map(task).collect())
    }

    /// Takes out the first ended member: `Ready(None)` without members, and pending while none has ended.
    fn take(&self) -> Poll<Option<Ended<T>>> {
        self.shared.queue.with(|state, waiters| match state.ended.pop_front() {
            Some(ended) => {
                state.wake_if_empty(waiters);
                Poll::Ready(Some(ended))
            }
            None if state.running.is_empty() => Poll::Ready(None),
            None => Poll::Pending,
        })
    }

    /// Waits for the next task to end, and takes it out.
    ///
    /// Returns `None` when there are no tasks.
    fn next(&self, deadline: Option<Instant>) -> Result<Option<Ended<T>>, StillRunning> {
        cancel_points::checkpoint();
        loop {
            if let Poll::Ready(taken) = self.take() {
                return Ok(taken);
            }
            let until = Until::unwind(deadline).described(const { &WaitDescription::new("join of a group") });
            let ready = |state: &mut State<T>| !state.ended.is_empty() || state.running.is_empty();
            if !self.shared.queue.wait_until(JOINERS, until, ready) {
                return Err(StillRunning);
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = Joined<T>> {
        self.all_ended().map(|(number, handle)| (number, handle.take()))
    }

    fn all_ended(&self) -> impl Iterator<Item = Ended<T>> {
        std::iter::from_fn(|| self.next(None).expect("a wait without a deadline does not run out"))
    }

    /// Waits for the next task to end and takes its result; `None` without tasks.
    ///
    /// # Cancellation
    /// A cancellation point. A result that comes together with the cancel is returned, or left for
    /// the next call.
    pub fn join_next(&self) -> Option<Result<T, JoinError>> {
        self.all().next().map(|(_, result)| result)
    }

    /// Waits for the next task to end, and takes its result with the task; `None` without tasks.
    ///
    /// # Cancellation
    /// As for [`join_next`](TaskGroup::join_next).
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let group = fibra::TaskGroup::new();
    /// let spawned = group.spawn(|| panic!("no luck"));
    /// let (task, result) = group.join_next_with_task().unwrap();
    /// assert!(task == spawned && result.unwrap_err().is_panic());
    /// # let _: fibra::TaskGroup<()> = group;
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join_next_with_task(&self) -> Option<(Task, Result<T, JoinError>)> {
        self.all_ended().next().map(|(_, handle)| (handle.task().clone(), handle.take()))
    }

    /// Waits for the next task to end, at most for `timeout`, and takes its result.
    ///
    /// Returns `None` when there are no tasks.
    ///
    /// # Errors
    /// Fails when no task has ended in time.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use std::time::Duration;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let group = fibra::TaskGroup::new();
    /// group.spawn(fibra::task::park);
    /// assert!(group.join_next_timeout(Duration::from_millis(1)).is_err());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join_next_timeout(&self, timeout: Duration) -> Result<Option<Result<T, JoinError>>, StillRunning> {
        let ended = self.next(sleep::deadline(timeout))?;
        Ok(ended.map(|(_, handle)| handle.take()))
    }

    /// Takes the result of an ended task, without a wait; `None` if none has ended.
    ///
    /// A look that finds none counts against the operation budget, so the caller may yield: a loop over
    /// it lets other tasks run.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let group = fibra::TaskGroup::new();
    /// group.spawn(|| 1);
    /// assert!(group.try_join_next().is_none(), "has not run yet");
    /// fibra::yield_now();
    /// assert_eq!(group.try_join_next().unwrap().unwrap(), 1);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_join_next(&self) -> Option<Result<T, JoinError>> {
        point();
        match self.take() {
            Poll::Ready(ended) => ended.map(|(_, handle)| handle.take()),
            Poll::Pending => {
                budget::charge_after();
                None
            }
        }
    }

    /// Waits for all tasks, and takes their results in the order in which they end.
    ///
    /// # Cancellation
    /// A cancellation point; results taken so far are dropped then.
    pub fn join_all(&self) -> Vec<Result<T, JoinError>> {
        self.all().map(|(_, result)| result).collect()
    }

    /// Waits for all tasks, and takes their results in the order of their spawns.
    ///
    /// # Cancellation
    /// A cancellation point; the remaining tasks are cancelled then, as by a drop.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let group = fibra::TaskGroup::new();
    /// group.spawn(|| fibra::yield_now());
    /// group.spawn(|| panic!("fails"));
    /// let results = group.into_results();
    /// assert!(results[0].is_ok() && results[1].is_err());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_results(self) -> Vec<Result<T, JoinError>> {
        in_order(self.all().collect())
    }
}

impl<T: Send + 'static> TaskGroup<T> {
    /// Spawns a task, and waits while as many run as the limit allows.
    ///
    /// # Cancellation
    /// A cancellation point in a group with a limit.
    ///
    /// # Panics
    /// Panics off a runtime.
    #[track_caller]
    pub fn spawn<F>(&self, f: F) -> Task
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.spawn_as(Builder::new(), f)
    }

    /// Spawns a task with a name, as [`spawn`](TaskGroup::spawn) does one without.
    ///
    /// # Panics
    /// Panics off a runtime.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let group = fibra::TaskGroup::new();
    /// group.spawn_named("worker", || fibra::task::current().name().map(String::from));
    /// assert_eq!(group.join_next().unwrap().unwrap().as_deref(), Some("worker"));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_named<F>(&self, name: impl Into<Arc<str>>, f: F) -> Task
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.spawn_as(Builder::new().name(name), f)
    }

    /// Spawns the task that `builder` describes, as [`spawn`](TaskGroup::spawn) does.
    ///
    /// # Panics
    /// Panics off a runtime.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let group = fibra::TaskGroup::new();
    /// let builder = fibra::task::Builder::new().stack_size(1 << 20);
    /// group.spawn_as(builder, || [1_u8; 500_000].len());
    /// assert_eq!(group.join_next().unwrap().unwrap(), 500_000);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_as<F>(&self, builder: Builder, f: F) -> Task
    where
        F: FnOnce() -> T + Send + 'static,
    {
        Builder::require_runtime("TaskGroup::spawn");
        let builder = builder.at(Location::caller());
        self.enter(|member| builder.spawn_with(f, member))
    }

    /// Spawns a task that stays on the current worker, as [`spawn`](TaskGroup::spawn) does elsewhere.
    ///
    /// `f` need not be `Send`.
    ///
    /// # Cancellation
    /// A cancellation point in a group with a limit.
    ///
    /// # Panics
    /// Panics off a worker.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(2).build()?.run(|| {
    /// let text = std::rc::Rc::new("local");
    /// let group = fibra::TaskGroup::new();
    /// group.spawn_local({ let text = text.clone(); move || text.len() });
    /// assert_eq!(group.join_next().unwrap().unwrap(), text.len());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&self, f: F) -> Task
    where
        F: FnOnce() -> T + 'static,
    {
        self.spawn_local_as(Builder::new(), f)
    }

    /// Spawns the task that `builder` describes, as [`spawn_local`](TaskGroup::spawn_local) does.
    ///
    /// # Panics
    /// Panics off a worker.
    #[track_caller]
    pub fn spawn_local_as<F>(&self, builder: Builder, f: F) -> Task
    where
        F: FnOnce() -> T + 'static,
    {
        let builder = builder.at(Location::caller());
        self.enter(|member| builder.spawn_local_with(f, member))
    }

    /// Takes a place, has `spawn` make the task for it, and keeps the handle.
    #[track_caller]
    fn enter(&self, spawn: impl FnOnce(Member<T>) -> JoinHandle<T>) -> Task {
        let key = self.occupy();
        let occupied = Occupied { shared: &self.shared, key };
        let handle = spawn(Member { shared: Arc::clone(&self.shared), key });
        mem::forget(occupied);
        let task = handle.task().clone();
        self.shared.queue.with(|state, waiters| match &mut state.running[key].stage {
            Stage::EndedEarly => state.end(key, handle, waiters),
            stage => *stage = Stage::Running(handle),
        });
        task
    }

    /// Takes a place for a new task, and waits while the limit leaves none.
    fn occupy(&self) -> usize {
        let limit = self.shared.limit;
        match limit < usize::MAX {
            true => cancel_points::checkpoint(),
            false => point(),
        }
        let place = |state: &mut State<T>| (state.running.len() < limit).then(|| state.occupy());
        if let Some(key) = self.shared.queue.with(|state, _| place(state)) {
            return key;
        }
        let (outcome, handed_over) = self.shared.queue.wait(
            SPAWNERS,
            0,
            Until::unwind(None).described(const { &WaitDescription::new("full task group") }),
            |state, _, _| place(state).map_or(Admit::Back, Admit::Done),
            || (),
            |_, _, _, _| (),
        );
        match outcome {
            Outcome::Done(key) => key,
            _ => handed_over,
        }
    }
}

impl<T, E> TaskGroup<Result<T, E>> {
    /// Waits until all tasks have succeeded, or for the first failure.
    ///
    /// The values come in the order of the spawns. The first failure, by an error, a panic or a
    /// cancellation, cancels the rest; it is returned when all have ended.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Errors
    /// With the first failure.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let group = fibra::TaskGroup::new();
    /// for text in ["1", "two", "3"] {
    ///     group.spawn(move || text.parse::<u32>());
    /// }
    /// assert!(group.try_join_all().is_err());
    /// assert!(group.is_empty());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_join_all(&self) -> Result<Vec<T>, GroupError<E>> {
        // No cancellation cuts the destructors of what is not returned short.
        let mut values = Shielded::new(Vec::new());
        let mut failure = None;
        for (number, result) in self.all() {
            let error = match result {
                Ok(Ok(value)) => {
                    values.push((number, value));
                    continue;
                }
                Ok(Err(error)) => GroupError::Failed(error),
                Err(error) => GroupError::Ended(error),
            };
            match failure {
                None => failure = Some(error),
                Some(_) => drop(Shielded::new(error)),
            }
            // Once more, for tasks that were spawned since the first failure.
            self.cancel_all();
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(in_order(Shielded::into_inner(values))),
        }
    }
}

/// Result of an ended task, with the number of its spawn.
type Joined<T> = (u64, Result<T, JoinError>);

fn in_order<V>(mut numbered: Vec<(u64, V)>) -> Vec<V> {
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, value)| value).collect()
}

impl<T> Drop for TaskGroup<T> {
    fn drop(&mut self) {
        let (running, ended) =
            self.shared.queue.with(|state, _| (mem::take(&mut state.running), mem::take(&mut state.ended)));
        for (_, place) in &running {
            if let Stage::Running(handle) = &place.stage {
                handle.cancel();
            }
        }
        // Detaches the tasks, and drops the results.
        drop((ended, running));
    }
}

impl<T> Default for TaskGroup<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for TaskGroup<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskGroup")
            .field("len", &self.shared.queue.with(|state, _| state.len()))
            .finish_non_exhaustive()
    }
}
