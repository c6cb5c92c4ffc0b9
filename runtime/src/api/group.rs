//! A growing set of tasks.
//!
//! The group's members are linked in one of two rings, running and ended, by links that lie in the
//! tasks themselves; the group has the count and the right to the result that a `JoinHandle` would
//! have. Both are kept under one lock.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::builder::Builder;
use crate::api::group_error::{GroupError, StillRunning};
use crate::api::join_handle::JoinHandle;
use crate::api::sleep;
use crate::base::intrusive_list::{Link, Ring};
use crate::sleep::cancel_points;
use crate::sleep::queue::WaitQueue;
use crate::sleep::queue::wait::{Admit, Outcome, Until};
use crate::sleep::queue::waiters::Waiters;
use crate::tasks::header::TaskRef;
use crate::tasks::join_error::JoinError;
use crate::tasks::raw::Kin;
use crate::tasks::task::Task;

/// Owns a growing set of tasks, and yields their results in the order of their ends.
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
/// ```compile_fail,E0597
/// # use fibra_runtime as fibra;
/// let group = fibra::TaskGroup::new();
/// let text = String::from("here");
/// group.spawn(|| text.len());
/// ```
pub struct TaskGroup<T> {
    shared: Arc<Shared>,
    /// Invariant: results go in by a shared reference, and come out by another.
    result: PhantomData<fn(T) -> T>,
}

// SAFETY: what the group moves between threads are results.
unsafe impl<T: Send> Send for TaskGroup<T> {}
// SAFETY: as above; a result leaves the group once, and no `&T` is ever given out.
unsafe impl<T: Send> Sync for TaskGroup<T> {}

struct Shared {
    queue: WaitQueue<State, (), 2>,
    limit: usize,
}

/// The lane of tasks that wait for a result.
const JOINERS: usize = 0;
/// The lane of tasks that wait for a place.
const SPAWNERS: usize = 1;

struct State {
    /// Members that have not ended; their tasks are alive.
    running: Ring<Place>,
    /// Members that have ended and are not joined; the group's count keeps them.
    ended: Ring<Place>,
    /// Members that count against the limit: running, or about to be made.
    occupied: usize,
    /// All members: in a ring, or about to be made.
    members: usize,
    spawned: u64,
}

/// A member's place in the rings.
struct Place {
    /// Set once the task is made.
    task: Cell<Option<TaskRef>>,
    /// Number of its spawn.
    number: Cell<u64>,
}

/// Link of a task to its group. Lies in the task.
struct Member {
    link: Link<Place>,
    shared: Arc<Shared>,
}

impl Kin for Member {
    const AWAITS: bool = true;

    fn made(&self, task: TaskRef) {
        // The spawn's own: the group's may be used up, with the result, before the spawn returns.
        task.retain();
        self.link.data().task.set(Some(task));
        self.shared.queue.with(|state, _| {
            state.spawned += 1;
            self.link.data().number.set(state.spawned);
            // SAFETY: new to every ring; it lies in the task, which stays until it was taken out: the runtime's count
            // keeps it while it runs, and the group's from then on.
            unsafe { state.running.push_back(&self.link) };
        });
    }

    fn unclaimed(&self, _error: &JoinError) {}

    fn ended(&self) {
        // A joiner may take this member's result at once; the runtime's count keeps the task until this returns.
        self.shared.queue.with(|state, waiters| {
            // SAFETY: in this ring, unless the group has gone, which took it out of all.
            if unsafe { state.running.remove(&self.link) } {
                // SAFETY: in no ring now.
                unsafe { state.ended.push_back(&self.link) };
                waiters.serve_front(JOINERS, |()| ());
                state.vacate(waiters);
            }
        });
    }
}

/// Gives a place back, should the spawn unwind that it was occupied for: what a task inherits is
/// cloned by code of the user's.
struct Occupied<'a>(&'a Shared);

impl Drop for Occupied<'_> {
    fn drop(&mut self) {
        self.0.queue.with(|state, waiters| {
            state.vacate(waiters);
            state.leave(waiters);
        });
    }
}

impl State {
    /// Occupies a place for a task that is to be made. Returns false if there is none.
    fn occupy(&mut self, limit: usize) -> bool {
        let vacant = self.occupied < limit;
        self.occupied += usize::from(vacant);
        self.members += usize::from(vacant);
        vacant
    }

    /// One place less is occupied, or it belongs to the first waiting spawner, which is to be woken.
    fn vacate(&mut self, waiters: &mut Waiters<'_, (), 2>) {
        match waiters.serve_front(SPAWNERS, |()| ()) {
            Some(()) => self.members += 1,
            None => self.occupied -= 1,
        }
    }

    /// Counts a member out. Nothing comes for joiners once there are none.
    fn leave(&mut self, waiters: &mut Waiters<'_, (), 2>) {
        self.members -= 1;
        if self.members == 0 {
            waiters.serve_all(JOINERS);
        }
    }
}

impl Shared {
    /// Waits in a lane as `admit` says.
    fn wait(&self, lane: usize, until: Until, admit: impl Fn(&mut State) -> Admit<()>) -> Outcome<()> {
        self.queue.wait(lane, (), until, |state, (), _| admit(state), || (), |_, (), _, _| ()).0
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
        let state = State { running: Ring::new(), ended: Ring::new(), occupied: 0, members: 0, spawned: 0 };
        TaskGroup { shared: Arc::new(Shared { queue: WaitQueue::new(state), limit }), result: PhantomData }
    }

    /// Returns how many tasks run or have an untaken result.
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
        self.shared.queue.with(|state, _| state.members)
    }

    /// Returns true when no task runs or has an untaken result.
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

    /// Returns counted handles to all members that have not ended.
    fn running(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        loop {
            // Room is made without the lock.
            let members = self.shared.queue.with(|state, _| state.members);
            tasks.reserve(members);
            let is_done = self.shared.queue.with(|state, _| {
                let has_room = state.members <= tasks.capacity();
                if has_room {
                    state.running.for_each(|place| tasks.extend(place.task.get().map(Task::counted)));
                }
                has_room
            });
            if is_done {
                return tasks;
            }
        }
    }

    /// Takes out the first ended member.
    fn take(&self) -> Taken<T> {
        let taken = self.shared.queue.with(|state, waiters| {
            let Some(link) = state.ended.pop_front() else { return Err(state.members == 0) };
            state.leave(waiters);
            // SAFETY: it was in this ring, so it is alive, and stays so by the group's count.
            let place = unsafe { link.as_ref() }.data();
            Ok((place.task.get(), place.number.get()))
        });
        let (task, number) = match taken {
            Ok((task, number)) => (task.expect("a member is a task"), number),
            Err(true) => return Taken::Empty,
            Err(false) => return Taken::Nothing,
        };
        // SAFETY: made by this group's `spawn` with `T`, and the handle's count was left to the group.
        Taken::Ended(number, unsafe { JoinHandle::new(task) })
    }

    /// Waits for the next task to end, and returns its result and number.
    ///
    /// Returns `None` when there are no tasks.
    fn next(&self, deadline: Option<Instant>) -> Result<Option<Ended<T>>, StillRunning> {
        cancel_points::checkpoint();
        loop {
            match self.take() {
                Taken::Ended(number, handle) => return Ok(Some((number, handle.take()))),
                Taken::Empty => return Ok(None),
                Taken::Nothing => {}
            }
            let admit = |state: &mut State| match state.ended.is_empty() && state.members > 0 {
                true => Admit::Back,
                false => Admit::Done(()),
            };
            if self.shared.wait(JOINERS, Until::unwind(deadline), admit) == Outcome::TimedOut {
                return Err(StillRunning);
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = Ended<T>> {
        std::iter::from_fn(|| match self.next(None) {
            Ok(ended) => ended,
            Err(StillRunning) => unreachable!("a wait without a deadline does not run out"),
        })
    }

    /// Waits for the next task to end and takes its result; `None` without tasks.
    ///
    /// # Cancellation
    /// A cancellation point. A result that comes together with the cancel is returned, or left for
    /// the next call.
    pub fn join_next(&self) -> Option<Result<T, JoinError>> {
        self.all().next().map(|(_, result)| result)
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
        Ok(ended.map(|(_, result)| result))
    }

    /// Takes the result of an ended task, without a wait; `None` if none has ended.
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
        match self.take() {
            Taken::Ended(_, handle) => Some(handle.take()),
            Taken::Empty | Taken::Nothing => None,
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
        self.occupy();
        let occupied = Occupied(&self.shared);
        let place = Place { task: Cell::new(None), number: Cell::new(0) };
        let member = Member { link: Link::new(place), shared: Arc::clone(&self.shared) };
        // SAFETY: `f` and `T` are `Send` and `'static`. A member uses its link only under the
        // group's lock.
        let handle = unsafe { builder.spawn_kin(f, member) };
        mem::forget(occupied);
        // SAFETY: the count that `made` has taken for this. Nothing but the handle itself is looked at: its count and the right
        // to the result have been the group's since the task could run, and it may have been joined by now.
        let task = unsafe { Task::from_count(handle.task().as_ref()) };
        mem::forget(handle);
        task
    }

    /// Counts a new task against the limit, and waits for that if need be.
    fn occupy(&self) {
        if self.shared.limit < usize::MAX {
            cancel_points::checkpoint();
        }
        let limit = self.shared.limit;
        if self.shared.queue.with(|state, _| state.occupy(limit)) {
            return;
        }
        // Occupied when it is admitted, or handed over by a task that ended.
        self.shared.wait(SPAWNERS, Until::unwind(None), |state| match state.occupy(limit) {
            true => Admit::Done(()),
            false => Admit::Back,
        });
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
        let mut values = Vec::new();
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
            if failure.is_none() {
                failure = Some(error);
            }
            // Once more, for tasks that were spawned since the first failure.
            self.cancel_all();
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(in_order(values)),
        }
    }
}

/// Result of an ended task, with the number of its spawn.
type Ended<T> = (u64, Result<T, JoinError>);

enum Taken<T> {
    Ended(u64, JoinHandle<T>),
    /// None has ended.
    Nothing,
    /// There are no tasks.
    Empty,
}

fn in_order<V>(mut numbered: Vec<(u64, V)>) -> Vec<V> {
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, value)| value).collect()
}

impl<T> Drop for TaskGroup<T> {
    fn drop(&mut self) {
        let tasks = self.running();
        tasks.iter().for_each(Task::cancel);
        loop {
            let task = self.shared.queue.with(|state, _| {
                let link = state.ended.pop_front().or_else(|| state.running.pop_front())?;
                // SAFETY: it was in a ring, so it is alive, and stays so by the group's count.
                Some(unsafe { link.as_ref() }.data().task.get())
            });
            let Some(task) = task else { break };
            // SAFETY: made by this group's `spawn` with `T`, and the handle's count was left to the group. The drop detaches
            // the task, or drops its result.
            drop(unsafe { JoinHandle::<T>::new(task.expect("a member is a task")) });
        }
    }
}

impl<T> Default for TaskGroup<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for TaskGroup<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskGroup").field("len", &self.len()).finish_non_exhaustive()
    }
}
