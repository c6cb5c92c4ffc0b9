//! Builders of tasks.

use std::fmt;
use std::io;
use std::panic::Location;
use std::ptr;
use std::sync::{Arc, Mutex};

use crate::api::join_handle::JoinHandle;
use crate::base::clock;
use crate::scheduler::current;
use crate::scheduler::shared::{self, Shared};
use crate::scheduler::simulated::point;
use crate::scheduler::wake;
use crate::scheduler::worker::Worker;
use crate::sleep::cancel_points::may_unwind;
use crate::tasks::cancel;
use crate::tasks::context;
use crate::tasks::header::{Nature, Origin, TaskRef, Traits};
use crate::tasks::hook_maker::HookMaker;
use crate::tasks::join_error::JoinError;
use crate::tasks::locals::Locals;
use crate::tasks::raw::{self, TaskHooks};
use crate::tasks::switch_hook::{Switch, SwitchHook};

/// The stack of a task that stands for a closure on the blocking pool: as much as its threads have.
const POOL_STACK_SIZE: usize = 2 << 20;

/// Describes a task: its name, the size of its stack, where it may run.
///
/// # Examples
/// ```
/// # use fibra_runtime::{self as fibra, task};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let deep = task::Builder::new().name("deep").stack_size(1 << 20).spawn(|| task::current().to_string());
/// assert!(deep.join().unwrap().contains("'deep'"));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default)]
pub struct Builder {
    traits: Option<Box<Traits>>,
    nature: Nature,
    /// The call that spawns the task; unless set, that of the builder.
    spawned_at: Option<&'static Location<'static>>,
}

impl Builder {
    /// Describes a task without a name, which stays on the worker where it starts.
    ///
    /// Its stack has the size that the runtime sets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the task, as reports and panic messages show it.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.traits().name = Some(name.into());
        self
    }

    /// Sets the size of the task's stack in bytes of address space.
    ///
    /// The guard is included. The size is rounded up to a power of two.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let task = fibra::task::Builder::new().stack_size(1 << 20).spawn(|| [1_u8; 500_000].len());
    /// assert_eq!(task.join().unwrap(), 500_000);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.traits().stack_size = Some(bytes);
        self
    }

    /// Sets a hook that runs around each run of the task.
    ///
    /// It is for what is tied to the thread but belongs to the task: an entered tracing span, a
    /// scoped thread-local. It replaces an earlier hook.
    ///
    /// The hook is called on the task's own stack. A call with [`Switch::In`] comes before the task's
    /// first code and right after each suspension. A call with [`Switch::Out`] comes right before
    /// each suspension and after the last code. The destructors of task-locals and of an unclaimed
    /// result count as code. Calls alternate, beginning with `In`, and an `Out` is the last. A task that
    /// ends un-run off the workers has none. The hook itself is dropped in the task, when that has
    /// ended.
    ///
    /// It must not suspend: [`forbid_suspend`](crate::tasks::forbid::forbid_suspend) holds inside,
    /// and no cancellation is raised.
    ///
    /// # Panics
    /// Not itself. A panic of the hook, so also an attempt to suspend in it, ends the process: the
    /// task is half switched. So does a guard of `forbid_suspend` that it leaves behind, since what
    /// the task does next may have to sleep.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime::{self as fibra, task};
    /// use std::cell::Cell;
    /// thread_local! { static NAME: Cell<&'static str> = const { Cell::new("none") } }
    ///
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let mut other = "me";
    /// let swap = move |_: task::Switch| other = NAME.replace(other);
    /// let task = task::Builder::new().on_switch(swap).spawn(|| {
    ///     fibra::yield_now();
    ///     NAME.get()
    /// });
    /// fibra::yield_now();
    /// assert_eq!(NAME.get(), "none");
    /// assert_eq!(task.join().unwrap(), "me");
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_switch(mut self, hook: impl FnMut(Switch) + Send + 'static) -> Self {
        self.traits().on_switch = SwitchHook::new(hook);
        self
    }

    /// Lets the task continue on another worker after each suspension.
    ///
    /// It does not migrate while it unwinds.
    ///
    /// # Safety
    /// In all code that the task runs, over every suspension (of which each wait, lock, I/O and
    /// `yield_now` may be one):
    /// * no value lives that is tied to a thread: `Rc`, a `MutexGuard` of std, anything that is not
    ///   `Send`; nor one in a [`TaskLocal`](crate::api::task_local::TaskLocal), which lives until
    ///   the task ends;
    /// * no reference to a thread-local lives, and no address of one: the compiler may keep such an
    ///   address in a register over any call that it can see through, so thread-locals are reached
    ///   in functions only that do not suspend and are not inlined into ones that do.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(2).build()?.run(|| {
    /// // SAFETY: the task has nothing of its thread when it yields.
    /// let builder = unsafe { fibra::task::Builder::new().migratable() };
    /// let task = builder.spawn(|| {
    ///     fibra::yield_now();
    ///     42
    /// });
    /// assert_eq!(task.join().unwrap(), 42);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub unsafe fn migratable(mut self) -> Self {
        self.nature = Nature::Migratable;
        self
    }

    /// Spawns the task on the current runtime.
    ///
    /// # Panics
    /// Panics off a runtime.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let task = fibra::task::Builder::new().name("sum").spawn(|| (1..=10).sum::<u32>());
    /// assert_eq!(task.task().name(), Some("sum"));
    /// assert_eq!(task.join().unwrap(), 55);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_with(f, ())
    }

    /// Spawns the task on the current worker, where it stays.
    ///
    /// `f` and its value need not be `Send`.
    ///
    /// # Panics
    /// Panics off a worker.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let text = std::rc::Rc::new("local");
    /// let task = fibra::task::Builder::new().spawn_local(move || text.len());
    /// assert_eq!(task.join().unwrap(), 5);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_local<F, T>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        self.spawn_local_with(f, ())
    }

    /// Spawns the task with task hooks on the current worker.
    ///
    /// # Panics
    /// Panics off a worker.
    #[track_caller]
    pub(crate) fn spawn_local_with<F, T, K>(self, f: F, hooks: K) -> JoinHandle<T>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
        K: TaskHooks + Send + 'static,
    {
        // SAFETY: all of them are `'static`, and the hooks are `Send`.
        unsafe { self.spawn_local_borrowing(f, hooks) }
    }

    /// Spawns the task with task hooks on the current worker.
    ///
    /// # Panics
    /// Panics off a worker.
    ///
    /// # Safety
    /// What `f` and its value borrow lives until the handle or the hooks say that the task is done. What
    /// the hooks borrow lives until they were told so, and they may be dropped on any thread.
    #[track_caller]
    pub(crate) unsafe fn spawn_local_borrowing<F, T, K>(mut self, f: F, hooks: K) -> JoinHandle<T>
    where
        F: FnOnce() -> T,
        K: TaskHooks,
    {
        self.inherit();
        self.begin();
        // SAFETY: by this function's contract.
        let made = current::with_worker(|worker| unsafe { self.make_local(worker, f, hooks) });
        made.unwrap_or_else(|| off_the_runtime("spawn_local")).queue(spawn_here)
    }

    /// Runs `f` on the blocking pool of the current runtime.
    ///
    /// # Panics
    /// Panics off a runtime.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let task = fibra::task::Builder::new().name("blocks").spawn_blocking(|| std::thread::current().id());
    /// assert_ne!(task.join().unwrap(), std::thread::current().id());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F, T>(mut self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let shared = current::runtime().unwrap_or_else(|| off_the_runtime("spawn_blocking"));
        self.inherit();
        self.spawn_on_pool(&shared, Nature::Blocking, f)
    }

    #[track_caller]
    pub(crate) fn spawn_on_pool<F, T>(mut self, shared: &Arc<Shared>, nature: Nature, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if shared.is_simulated() {
            return self.stack_size(POOL_STACK_SIZE).spawn_on_runtime(shared, f);
        }
        self.nature = nature;
        self.begin();
        self.make_owned(shared, f).queue(|task| {
            // SAFETY: made just now; the runtime's count goes to the pool.
            unsafe { shared.spawn_on_pool(task) };
            Ok(())
        })
    }

    /// Spawns the task on the runtime `shared`.
    #[track_caller]
    pub(crate) fn spawn_on_runtime<F, T>(self, shared: &Shared, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: `f` and `T` are `Send` and `'static`.
        unsafe { self.spawn_erased_on(shared, f) }
    }

    /// Spawns a task that starts and stays on worker `index` of the runtime `shared`.
    #[track_caller]
    pub(crate) fn spawn_on_worker<F, T>(mut self, shared: &Shared, index: usize, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.inherit();
        self.begin();
        self.nature = Nature::Local;
        self.make_owned(shared, f).queue(|task| count_out_refused(shared, shared.inject_at(index, task)))
    }

    /// Spawns an internal task on the runtime `shared`. It inherits nothing.
    pub(crate) fn spawn_internal<F, T>(mut self, shared: &Shared, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.nature = Nature::Internal;
        self.make_owned(shared, f).queue(|task| count_out_refused(shared, shared.inject(task)))
    }

    /// Spawns the task with task hooks on the current runtime.
    ///
    /// # Panics
    /// Panics off a runtime.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn spawn_with<F, T, K>(self, f: F, hooks: K) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
        K: TaskHooks + Send + 'static,
    {
        // SAFETY: all of them are `Send` and `'static`.
        unsafe { self.spawn_erased(f, hooks) }
    }

    /// # Panics
    /// Panics off a runtime.
    #[track_caller]
    pub(crate) fn require_runtime(what: &str) {
        if current::worker().is_none() && current::runtime().is_none() {
            off_the_runtime(what)
        }
    }

    /// Spawns the task with task hooks on the current runtime.
    ///
    /// # Panics
    /// Panics off a runtime.
    ///
    /// # Safety
    /// As for `make`.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn spawn_erased<F, T, K>(mut self, f: F, hooks: K) -> JoinHandle<T>
    where
        F: FnOnce() -> T,
        K: TaskHooks,
    {
        self.begin();
        let Some(may_inherit) = current::with_worker(has_heirs) else {
            let shared = current::runtime().unwrap_or_else(|| off_the_runtime("spawn"));
            self.inherit();
            // SAFETY: by this function's contract.
            return unsafe { self.make(&shared, None, f, hooks) }
                .queue(|task| count_out_refused(&shared, shared.inject(task)));
        };
        if may_inherit {
            self.inherit();
        }
        // SAFETY: by this function's contract.
        let made = |worker: &Worker| unsafe { self.make(worker.shared(), Some(worker), f, hooks) };
        current::with_worker(made).expect("tasks of a runtime stay on its workers").queue(spawn_here)
    }

    /// Spawns the task on the runtime `shared`.
    ///
    /// # Safety
    /// As for `make`.
    #[track_caller]
    pub(crate) unsafe fn spawn_erased_on<F, T>(mut self, shared: &Shared, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T,
    {
        if current::with_worker(|worker| ptr::eq(&**worker.shared(), shared)) == Some(true) {
            // SAFETY: by this function's contract.
            return unsafe { self.spawn_erased(f, ()) };
        }
        self.inherit();
        self.begin();
        // SAFETY: by this function's contract.
        unsafe { self.make(shared, None, f, ()) }.queue(|task| count_out_refused(shared, shared.inject(task)))
    }

    /// Spawns the task on `worker`, which is this thread's, or about to be.
    ///
    /// # Safety
    /// What `f` and its value borrow lives until the task is done.
    pub(crate) unsafe fn spawn_local_erased<F, T>(self, worker: &Worker, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T,
    {
        // SAFETY: by this function's contract.
        let made = unsafe { self.make_local(worker, f, ()) };
        made.queue(|task| {
            worker.spawned(task);
            Ok(())
        })
    }

    /// # Safety
    /// As for `spawn_local_borrowing`.
    unsafe fn make_local<F, T, K>(mut self, worker: &Worker, f: F, hooks: K) -> Made<T>
    where
        F: FnOnce() -> T,
        K: TaskHooks,
    {
        self.nature = Nature::Local;
        // SAFETY: by this function's contract; the task stays on its worker.
        unsafe { self.make(worker.shared(), Some(worker), f, hooks) }
    }

    fn make_owned<F, T>(self, shared: &Shared, f: F) -> Made<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: `f` and `T` are `Send` and `'static`.
        unsafe { self.make(shared, None, f, ()) }
    }

    /// Makes the task. Here the lifetimes of `f`, its value and the hooks go.
    ///
    /// # Safety
    /// `f` and its value may be used on any thread that the task may run on. What they borrow lives until
    /// the handle or the hooks say that the task is done, and the hooks until they were told so.
    #[inline(always)]
    unsafe fn make<F, T, K>(self, shared: &Shared, worker: Option<&Worker>, f: F, hooks: K) -> Made<T>
    where
        F: FnOnce() -> T,
        K: TaskHooks,
    {
        // Other tasks see the end of the task as well.
        #[cfg(fibra_sim)]
        let f = move || {
            let value = f();
            point();
            value
        };
        let nature = self.nature;
        let traits = match &shared.config.on_switch {
            None => self.traits,
            Some(maker) => hooked(self.traits, maker, nature, K::AWAITS),
        };
        let admitted = shared.live.admit(nature);
        let (slabs, id, born) = match worker {
            Some(worker) => (Some(&worker.context().slabs), worker.next_id(), worker.coarse()),
            None => (None, shared::reserve_ids(1), clock::coarse()),
        };
        let task = raw::new(
            slabs,
            f,
            hooks,
            Origin { kind: &wake::TASK, id, nature, spawned_at: self.spawned_at, born, traits },
        );
        // SAFETY: made with `T` just now; the handle's count goes to it.
        Made { task, handle: unsafe { JoinHandle::new(task) }, admitted }
    }

    /// Clones the task-locals that tasks of the running code inherit.
    ///
    /// The clones are user code: they may suspend and panic.
    #[cold]
    pub(crate) fn inherit(&mut self) {
        if let Some(inherited) = context::inherited_locals() {
            self.traits().inherited = Some(Mutex::new(inherited));
        }
    }

    /// Begins the spawn of a task for the caller, whose place it notes, unless one was noted before.
    #[inline(always)]
    #[track_caller]
    fn begin(&mut self) {
        point();
        if !matches!(self.nature, Nature::Internal | Nature::Forked | Nature::Call) {
            self.spawned_at.get_or_insert(Location::caller());
        }
    }

    /// Sets the place of the spawn, for an operation that spawns inside a closure.
    pub(crate) fn at(mut self, place: &'static Location<'static>) -> Self {
        self.spawned_at = Some(place);
        self
    }

    /// Describes the main task of a `run`.
    pub(crate) fn main(stack_size: usize) -> Self {
        let mut main = Builder::new().name("main").stack_size(stack_size);
        main.traits().is_main = true;
        main
    }

    /// Makes the task run even if it is cancelled before its start, or the runtime ends.
    ///
    /// A caller that cannot be unwound waits for its result and its end.
    pub(crate) fn sheltered(mut self) -> Self {
        self.traits().sheltered = true;
        self
    }

    /// Describes a task for a spawner that waits for its value. For this library alone.
    ///
    /// Where the spawner must not be unwound it needs the value, so the task is
    /// [`sheltered`](Builder::sheltered). In a build without unwinding the task ends as others do,
    /// and an error is its value.
    #[doc(hidden)]
    pub fn helper() -> Self {
        match cancel::CAN_UNWIND && !may_unwind() {
            true => Builder::new().sheltered(),
            false => Builder::new(),
        }
    }

    /// Makes a task that its owner may take back while no worker has begun it.
    pub(crate) fn forked(mut self) -> Self {
        self.nature = Nature::Forked;
        self
    }

    fn traits(&mut self) -> &mut Traits {
        self.traits.get_or_insert_default()
    }
}

/// A task that is in no queue yet.
struct Made<T> {
    task: TaskRef,
    handle: JoinHandle<T>,
    admitted: io::Result<()>,
}

impl<T> Made<T> {
    /// Queues the task by `push`. Ends it where the limit of tasks or `push` refuses it.
    #[inline(always)]
    fn queue(self, push: impl FnOnce(TaskRef) -> Result<(), TaskRef>) -> JoinHandle<T> {
        let Made { task, handle, admitted } = self;
        match admitted.map(|()| push(task)) {
            Ok(Ok(())) => {}
            Ok(Err(task)) => refuse(task, JoinError::cancelled(handle.task())),
            Err(error) => refuse(task, JoinError::not_started(handle.task(), error)),
        }
        handle
    }
}

/// Counts a task that a runtime which is ending refuses out of its live tasks.
fn count_out_refused(shared: &Shared, queued: Result<(), TaskRef>) -> Result<(), TaskRef> {
    queued.inspect_err(|task| shared.live.ended(task.header().nature))
}

/// Ends a task that is in no queue.
#[cold]
fn refuse(task: TaskRef, error: JoinError) {
    // SAFETY: never queued, so the stage and the runtime's count are this caller's.
    unsafe { raw::discard_here(task, error) };
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let traits = self.traits.as_deref();
        f.debug_struct("Builder")
            .field("name", &traits.and_then(|traits| traits.name.as_deref()))
            .field("stack_size", &traits.and_then(|traits| traits.stack_size))
            .field("migratable", &(self.nature == Nature::Migratable))
            .finish()
    }
}

/// Returns true if code that runs on this worker may have values that tasks inherit.
#[inline]
fn has_heirs(worker: &Worker) -> bool {
    match worker.context().waiting_task() {
        Some(task) => task.header().present_locals().is_some_and(Locals::has_heirs),
        // A hook that runs beside the tasks.
        None => true,
    }
}

/// Has the runtime make its hook around the switches of a task, unless that runs code of this library alone.
///
/// The maker is user code: it may panic.
#[cold]
fn hooked(
    traits: Option<Box<Traits>>,
    maker: &HookMaker,
    nature: Nature,
    is_awaited: bool,
) -> Option<Box<Traits>> {
    if matches!(nature, Nature::Internal | Nature::Call) {
        return traits;
    }
    let mut traits = traits.unwrap_or_default();
    let hook = maker.make(traits.name.as_deref(), is_awaited || traits.is_main);
    traits.on_switch.surround(hook);
    Some(traits)
}

/// Queues a task on the worker of this thread.
fn spawn_here(task: TaskRef) -> Result<(), TaskRef> {
    current::with_worker(|worker| worker.spawned(task)).ok_or(task)
}

#[track_caller]
#[cold]
pub(crate) fn off_the_runtime(what: &str) -> ! {
    panic!(
        "`{what}` was called on a thread that belongs to no runtime: start one with `fibra::run(|| ...)`, or keep a \
         `Handle` and spawn on that"
    )
}
