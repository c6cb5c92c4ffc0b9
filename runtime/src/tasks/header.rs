//! The untyped part of a task.
//!
//! | field | may be touched by |
//! | --- | --- |
//! | `waiter.word`, `join`, `park`, `cancel_flags`, `refs` | any thread, by their own rules |
//! | `started`, `timed`, `away`, the saved stack pointer in `coroutine` | written as below; read by any thread, for reports |
//! | `next` | the party that queues the task, then the queue, then the taker: exactly one at a time; the task itself as it goes to sleep |
//! | `home` | written at the first run (migratable task: at each run); read by the party told to queue the task, and, for a task known to stay, by its wakers and cancellers |
//! | `coroutine` | the worker that the task is on, and the task when it suspends |
//! | `timer`, `timed` | the worker that the task is on |
//! | `registered`, `slot` | written at the first run, read at the end, by the worker that runs the task then |
//! | the rest of the cells | the running task itself, or its worker while it does not run |

use std::cell::{Cell, OnceCell};
use std::mem::{self, offset_of};
use std::num::NonZeroU64;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::base::clock;
use crate::base::limit::MOST_WORKERS;
use crate::coroutine::stop::Resumed;
use crate::coroutine::switch::Coroutine;
use crate::stack::handle::Stack;
use crate::tasks::bounds::Bound;
use crate::tasks::cancel_flags::CancelFlags;
use crate::tasks::join_error::JoinError;
use crate::tasks::join_state::Join;
use crate::tasks::locals::{InheritedLocals, Locals};
use crate::tasks::parking::Parking;
use crate::tasks::refs::Refs;
use crate::tasks::slow_path_flags::{SlowPath, SlowPathFlags};
use crate::tasks::switch_hook::{Hook, SwitchHook};
use crate::timer::ring::Node;
use crate::waiter::description::{WaitDescription, WaitRecord};
use crate::waiter::kind::{Kind, Waiter};
use crate::waiter::word::Word;

/// Describes a task to be made.
pub(crate) struct Origin {
    /// The kind of waiter that every task is.
    pub(crate) kind: &'static Kind,
    pub(crate) id: NonZeroU64,
    pub(crate) nature: Nature,
    /// The call that spawned it, if that is one of the user's.
    pub(crate) spawned_at: Option<&'static Location<'static>>,
    /// When, in ticks of the coarse clock.
    pub(crate) born: u32,
    /// Settings of the builder, for the few tasks that have any.
    pub(crate) traits: Option<Box<Traits>>,
}

/// Stands for the home worker of a task: the scheduler's [`Block`](crate::scheduler::block::Block),
/// opaque to this module.
pub(crate) enum HomeWorker {}

/// Tells where a task may run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Nature {
    /// On any worker at its first run, then on that one.
    #[default]
    Homing,
    /// On the worker that spawned it.
    Local,
    /// On another worker after each sleep.
    Migratable,
    /// Task of the library that starts as `Homing` does: no limit of tasks counts it.
    Internal,
    /// Starts as `Homing` does, unless its owner takes it back.
    ///
    /// No limit counts it, since its owner may wait for it.
    Forked,
    /// On a thread of the blocking pool.
    Blocking,
    /// On a thread of the second pool, for a system call that owns its resources. The end of the
    /// runtime does not wait for it.
    Call,
}

impl Nature {
    /// Returns true if it runs on only one worker from the beginning.
    #[inline]
    pub(crate) fn is_local(self) -> bool {
        self == Nature::Local
    }

    /// Returns true if it runs on a thread of a pool.
    pub(crate) fn is_on_pool(self) -> bool {
        matches!(self, Nature::Blocking | Nature::Call)
    }

    /// Returns true if the limit of tasks counts it.
    #[inline]
    pub(crate) fn is_counted(self) -> bool {
        !matches!(self, Nature::Internal | Nature::Forked)
    }
}

/// Holds what the builder of a task sets.
#[derive(Default)]
pub(crate) struct Traits {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) sheltered: bool,
    /// It is the main task of a `run`.
    pub(crate) is_main: bool,
    pub(crate) inherited: Option<Mutex<InheritedLocals>>,
    pub(crate) on_switch: SwitchHook,
}

/// Holds the typed operations on a task, for the untyped rest of the runtime.
pub(crate) struct VTable {
    /// Runs the closure to its end and completes the task. On the task's own stack, or on a thread of the pool.
    pub(crate) run: unsafe fn(TaskRef),
    /// Drops the closure without running it and completes the task with an error.
    pub(crate) discard: unsafe fn(TaskRef, JoinError),
    /// Moves the result of a done task to a `*mut Option<Result<T, JoinError>>`. Leaves `None`
    /// there if it was taken before.
    pub(crate) read: unsafe fn(TaskRef, NonNull<()>),
    /// Drops the result of a done task.
    pub(crate) drop_output: unsafe fn(TaskRef),
    /// Frees the allocation.
    pub(crate) free: unsafe fn(TaskRef),
    /// A scope or an owner waits for its end, even if no handle exists.
    pub(crate) is_awaited: bool,
    /// The set of tasks that it belongs to. The offsets are in bytes from the header.
    pub(crate) container: Option<Container>,
}

/// Tells a reader of memory which set of tasks a task belongs to: a scope or a group.
#[derive(Clone, Copy)]
pub(crate) struct Container {
    pub(crate) kind: &'static str,
    /// The offset of the pointer to the set, which stays as it is for the life of the task.
    pub(crate) pointer: usize,
    /// The size of the set, in bytes: the objects of waits for its tasks lie in it.
    pub(crate) size: usize,
    /// The offset, in the set, of the id of the task that it belongs to; 8 bytes, 0 for none.
    pub(crate) owner: Option<usize>,
}

impl Container {
    pub(crate) const fn shifted(mut self, by: usize) -> Self {
        self.pointer += by;
        self
    }
}

/// A big stack that a task runs on, in the frame of the call that has switched to it.
pub(crate) struct BigStack {
    pub(crate) coroutine: Coroutine,
    /// The big stack of that frame; null on the task's own.
    pub(crate) outer: *const BigStack,
}

/// Holds the untyped part of a task, in the order of use.
///
/// The first 64 bytes are what every switch touches. A sleeping task keeps all of the header in
/// memory. So what only running code needs lies on the stack, and what few tasks need in a box.
///
/// Rejected: alignment to a cache line. Tasks then fall on every second line of the caches, and
/// switches get slower.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) waiter: Waiter,
    next: AtomicPtr<Header>,
    home: AtomicPtr<HomeWorker>,
    /// The scopes around the running code that may end early, innermost first.
    pub(crate) bounds: Cell<*const Bound>,
    pub(crate) nature: Nature,
    started: AtomicBool,
    /// The cancel flags: what ended or may end the running code early.
    pub(crate) cancel_flags: CancelFlags,
    /// The timer is armed.
    timed: AtomicBool,
    pub(super) slow_path: SlowPathFlags,
    pub(crate) unconstrained: Cell<bool>,
    /// Its stack comes from the reserve.
    pub(crate) on_reserve: Cell<bool>,
    pub(crate) park: Parking,
    /// The coroutine on the task's own stack. Its first part ends the first 64 bytes.
    pub(crate) coroutine: Coroutine,
    refs: Refs,
    /// How many panics of this task were under way when it was suspended, and are not in its
    /// thread's count now. A task that owes any may not change its thread.
    owed: Cell<u16>,
    /// How many guards forbid the running code to suspend.
    forbidden: Cell<u16>,
    /// When it last fell asleep, in ticks of the coarse clock. Written by its worker, read by any thread.
    since: AtomicU32,
    /// When it was spawned, in such ticks.
    born: u32,
    pub(crate) join: Join,
    pub(crate) vtable: &'static VTable,
    pub(crate) id: NonZeroU64,
    /// Where it was spawned; `None` for a part of an operation of this library.
    spawned_at: Option<&'static Location<'static>>,
    pub(super) traits: Option<Box<Traits>>,
    /// The values of task-locals, from the first one on.
    locals: OnceCell<Box<Locals>>,
    /// The innermost big stack that the task runs on; null on its own.
    away: AtomicPtr<BigStack>,
    /// The slot in the registry of the worker that the task started on, and the index of that
    /// worker.
    slot: Cell<u32>,
    registered: Cell<u16>,
    /// How often its cancellation has unwound this task; saturates.
    pub(crate) unwound: Cell<u16>,
    pub(crate) timer: Node,
}

const _: () = assert!(offset_of!(Header, coroutine) + size_of::<[usize; 2]>() <= 64);

// A part of the sum in `SCALING.md`.
const _: () = assert!(size_of::<Header>() - size_of::<Coroutine>() <= 152);

const _: () = assert!(MOST_WORKERS <= u16::MAX as usize);

/// Tells a reader of the process's memory where the fields of a `Header` lie, in bytes from it where nothing else is said.
#[repr(C)]
pub struct Layout {
    /// The wait word: 8 bytes.
    pub word: u32,
    /// The bits of the wait word that count.
    pub mask: u32,
    /// Their value while the task is asleep.
    pub asleep: u32,
    /// The number of the task: 8 bytes.
    pub id: u32,
    /// The pointer to the record of what it waits for, while it is asleep.
    pub record: u32,
    /// The coroutine on the task's own stack.
    pub coroutine: u32,
    /// The saved stack pointer, from a coroutine: 0 while it runs, 1 after its end.
    pub saved: u32,
    /// How many bytes the switch has pushed at that pointer: the address to go on at is the first word, the frame pointer the
    /// third. 0 if these two words follow the saved pointer in the coroutine instead.
    pub pushed: u32,
    /// The highest address of the stack, from a coroutine.
    pub base: u32,
    /// The pointer to the innermost big stack; null for none.
    pub away: u32,
    /// The coroutine of a big stack, from that.
    pub big_coroutine: u32,
    /// The pointer to the next big stack out, from a big stack.
    pub big_outer: u32,
    /// The pointer to what the builder has set; null for nothing.
    pub traits: u32,
    /// The name, from there: the pointer, null for none, and the length. The text follows two words of counts.
    pub name: u32,
    /// The pointer to the location of the spawn, of std's layout; null for none.
    pub spawned_at: u32,
}

impl Layout {
    /// Its size in words of 32 bits.
    pub const WORDS: usize = size_of::<Layout>() / size_of::<u32>();

    /// Makes what these words of another process's memory hold.
    pub fn of(words: [u32; Layout::WORDS]) -> Self {
        // SAFETY: it consists of as many words, in the order of C, and each may have any value.
        unsafe { mem::transmute(words) }
    }
}

impl Header {
    /// The offset of the id from the join state.
    pub(crate) const ID_FROM_JOIN: isize =
        offset_of!(Header, id) as isize - offset_of!(Header, join) as isize;

    pub(crate) const LAYOUT: Layout = Layout {
        word: (offset_of!(Header, waiter) + offset_of!(Waiter, word)) as u32,
        mask: Word::SLEEPS[0],
        asleep: Word::SLEEPS[1],
        id: offset_of!(Header, id) as u32,
        record: offset_of!(Header, next) as u32,
        coroutine: offset_of!(Header, coroutine) as u32,
        saved: Coroutine::SAVED as u32,
        pushed: Coroutine::PUSHED as u32,
        base: Coroutine::BASE as u32,
        away: offset_of!(Header, away) as u32,
        big_coroutine: offset_of!(BigStack, coroutine) as u32,
        big_outer: offset_of!(BigStack, outer) as u32,
        traits: offset_of!(Header, traits) as u32,
        name: offset_of!(Traits, name) as u32,
        spawned_at: offset_of!(Header, spawned_at) as u32,
    };

    #[inline(always)]
    pub(crate) fn new(vtable: &'static VTable, mut origin: Origin) -> Self {
        let (mut locals, slow_path, cancel_flags) =
            (OnceCell::new(), SlowPathFlags::none(), CancelFlags::new());
        if let Some(traits) = &mut origin.traits {
            if let Some(inherited) = traits.inherited.take() {
                let inherited = inherited.into_inner().unwrap_or_else(PoisonError::into_inner);
                locals = Box::new(Locals::from(inherited)).into();
            }
            slow_path.set(SlowPath::HOOKED, traits.on_switch.is_set());
            if traits.sheltered {
                cancel_flags.set_sheltered();
            }
        }
        Header {
            waiter: Waiter::new(origin.kind),
            next: AtomicPtr::new(ptr::null_mut()),
            home: AtomicPtr::new(ptr::null_mut()),
            bounds: Cell::new(ptr::null()),
            nature: origin.nature,
            started: AtomicBool::new(false),
            cancel_flags,
            timed: AtomicBool::new(false),
            slow_path,
            unconstrained: Cell::new(false),
            on_reserve: Cell::new(false),
            park: Parking::new(),
            coroutine: Coroutine::vacant(),
            refs: Refs::two(),
            owed: Cell::new(0),
            forbidden: Cell::new(0),
            since: AtomicU32::new(origin.born),
            born: origin.born,
            join: Join::new(),
            vtable,
            id: origin.id,
            spawned_at: origin.spawned_at,
            traits: origin.traits,
            locals,
            away: AtomicPtr::new(ptr::null_mut()),
            slot: Cell::new(0),
            registered: Cell::new(0),
            unwound: Cell::new(0),
            timer: Node::new(),
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.traits.as_ref()?.name.as_deref()
    }

    /// Returns where the task was spawned, unless it is a part of an operation of this library.
    pub(crate) fn spawned_at(&self) -> Option<&'static Location<'static>> {
        self.spawned_at
    }

    pub(crate) fn stack_size(&self) -> Option<usize> {
        self.traits.as_ref()?.stack_size
    }

    /// Returns true for the main task of a `run`.
    pub(crate) fn is_main(&self) -> bool {
        self.traits.as_ref().is_some_and(|traits| traits.is_main)
    }

    /// Returns true while the task runs on a big stack.
    pub(crate) fn is_away(&self) -> bool {
        !self.away().is_null()
    }

    /// Returns true if the end of the runtime leaves it alone: code that cannot be unwound depends
    /// on it.
    #[inline]
    pub(crate) fn is_sheltered(&self) -> bool {
        self.cancel_flags.is_sheltered()
    }

    /// Makes the end of the runtime leave it alone. Called before the task is published.
    pub(crate) fn shelter(&self) {
        self.cancel_flags.set_sheltered();
    }

    /// Returns true if it runs in any case; see
    /// [`Builder::sheltered`](crate::api::builder::Builder::sheltered).
    pub(crate) fn runs_in_any_case(&self) -> bool {
        self.traits.as_ref().is_some_and(|traits| traits.sheltered)
    }

    /// Returns how long ago it was spawned.
    pub(crate) fn age(&self) -> Duration {
        clock::coarsely_since(self.born)
    }

    /// Notes that it falls asleep. By its worker.
    #[inline(always)]
    pub(crate) fn set_since(&self, now: u32) {
        // Relaxed: for reports.
        self.since.store(now, Ordering::Relaxed);
    }

    /// Returns how long it has been asleep, if it is.
    pub(crate) fn waited(&self) -> Duration {
        // Relaxed: as above.
        clock::coarsely_since(self.since.load(Ordering::Relaxed))
    }

    /// Returns its task-locals. For the task itself, and for the caller that ends it before it ran.
    pub(crate) fn locals(&self) -> &Locals {
        self.locals.get_or_init(Box::default)
    }

    /// Returns its task-locals, if any were ever set.
    #[inline]
    pub(crate) fn present_locals(&self) -> Option<&Locals> {
        self.locals.get().map(Box::as_ref)
    }

    pub(crate) fn is_started(&self) -> bool {
        // Relaxed: what queues the task orders it for its runner; others read it for reports.
        self.started.load(Ordering::Relaxed)
    }

    pub(crate) fn set_started(&self) {
        // Relaxed: as above.
        self.started.store(true, Ordering::Relaxed);
    }

    /// Returns true if its timer is armed.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        // Relaxed: for the worker that the task is on; others read it for reports.
        self.timed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_timed(&self, timed: bool) {
        // Relaxed: as above.
        self.timed.store(timed, Ordering::Relaxed);
    }

    /// Returns the block of its home worker, which queues this task.
    pub(crate) fn home(&self) -> *const HomeWorker {
        // Relaxed: its readers are the home worker, the party told to queue the task, and a party
        // that has read in the wait word that the task stays. The wait word, or what published the
        // sleep, orders them all after the store.
        self.home.load(Ordering::Relaxed)
    }

    pub(crate) fn set_home(&self, home: *const HomeWorker) {
        // Relaxed: as above.
        self.home.store(home.cast_mut(), Ordering::Relaxed);
    }

    /// Notes where the task is registered.
    pub(crate) fn set_registered(&self, worker: usize, slot: u32) {
        self.registered.set(worker as u16);
        self.slot.set(slot);
    }

    /// Returns the worker whose registry holds the task, and the slot there.
    pub(crate) fn registered(&self) -> (usize, u32) {
        (usize::from(self.registered.get()), self.slot.get())
    }

    /// Returns true if it was suspended while panics of it were under way.
    #[inline(always)]
    pub(crate) fn is_owed(&self) -> bool {
        self.slow_path.any(SlowPath::OWED)
    }

    /// Sets how many panics are under way, now that the task is off its thread.
    pub(crate) fn set_owed(&self, panics: u32) {
        self.owed.set(u16::try_from(panics).expect("a stack holds few panics"));
        self.slow_path.set(SlowPath::OWED, panics > 0);
    }

    /// Takes the number of panics that its thread has to count again before the task goes on.
    pub(crate) fn take_owed(&self) -> u32 {
        self.slow_path.set(SlowPath::OWED, false);
        self.owed.replace(0).into()
    }

    /// Returns true if the running code must not suspend.
    #[inline(always)]
    pub(crate) fn is_forbidden(&self) -> bool {
        self.slow_path.any(SlowPath::FORBIDDEN)
    }

    /// Returns how many guards forbid the running code to suspend.
    pub(crate) fn times_forbidden(&self) -> u32 {
        self.forbidden.get().into()
    }

    /// Forbids the running code to suspend, until [`permit`](Header::permit) was called as often.
    pub(crate) fn forbid(&self) {
        self.forbidden.set(self.forbidden.get().checked_add(1).expect("guards are dropped, not leaked"));
        self.slow_path.set(SlowPath::FORBIDDEN, true);
    }

    pub(crate) fn permit(&self) {
        self.forbidden.set(self.forbidden.get() - 1);
        self.slow_path.set(SlowPath::FORBIDDEN, self.forbidden.get() > 0);
    }

    /// Sets the big stack that the task runs on. Null stands for the task's own stack.
    pub(crate) fn change_stack(&self, to: *const BigStack) {
        self.slow_path.set(SlowPath::AWAY, !to.is_null());
        // Relaxed: for the running task; others read it for reports.
        self.away.store(to.cast_mut(), Ordering::Relaxed);
    }

    /// Returns the big stack that the task runs on; null on its own.
    pub(crate) fn away(&self) -> *const BigStack {
        // Relaxed: as above.
        self.away.load(Ordering::Relaxed)
    }

    /// Returns the stack that the task runs on.
    ///
    /// # Safety
    /// The task is the running one, and does not leave that stack while the reference is used.
    pub(crate) unsafe fn stack(&self) -> Option<&Stack> {
        // SAFETY: by this function's contract; no stack is taken from the task that runs on it.
        unsafe { self.coroutine_on(self.away()).stack() }
    }

    /// # Safety
    /// Code of the task is on that big stack, and stays there while the reference is used. Null stands for the task's own.
    unsafe fn coroutine_on(&self, away: *const BigStack) -> &Coroutine {
        // SAFETY: a big stack stays in place while code runs on it.
        unsafe { away.as_ref() }.map_or(&self.coroutine, |away| &away.coroutine)
    }

    /// Leaves that big stack; null stands for the task's own.
    ///
    /// # Safety
    /// The caller runs in this very task, on that stack.
    pub(crate) unsafe fn suspend_from(&self, away: *const BigStack, result: Resumed) {
        // SAFETY: by this function's contract.
        unsafe { self.coroutine_on(away).suspend(result) };
    }

    #[inline(always)]
    pub(crate) fn is_hooked(&self) -> bool {
        self.slow_path.any(SlowPath::HOOKED)
    }

    /// Takes the hook away, for the end of the task.
    pub(crate) fn unhook(&self) -> Option<Hook> {
        self.slow_path.set(SlowPath::HOOKED, false);
        self.traits.as_ref()?.on_switch.take()
    }

    /// Runs `f` on the stack of the worker.
    ///
    /// # Safety
    /// As for `suspend`; and `f` must not suspend.
    pub(crate) unsafe fn on_worker_stack<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        // SAFETY: by this function's contract; what runs on a big stack was resumed from the task's own.
        unsafe { self.coroutine.on_worker_stack(f) }
    }
}

/// Points to a task that a queue, the registry or a counted handle keeps alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskRef(NonNull<Header>);

// SAFETY: the module docs say field by field what a pointer may do on another thread.
unsafe impl Send for TaskRef {}
// SAFETY: as above.
unsafe impl Sync for TaskRef {}

impl TaskRef {
    pub(crate) fn new(header: NonNull<Header>) -> Self {
        TaskRef(header)
    }

    /// Returns the task at that address, which [`as_ptr`](TaskRef::as_ptr) gave; `None` for null.
    #[inline]
    pub(crate) fn from_ptr(header: *mut Header) -> Option<Self> {
        NonNull::new(header).map(TaskRef)
    }

    /// Returns the task as the argument of its coroutine's first frame.
    pub(crate) fn argument(self) -> NonNull<()> {
        self.0.cast()
    }

    /// Returns the task that [`argument`](TaskRef::argument) was called on.
    pub(crate) fn of_argument(argument: NonNull<()>) -> Self {
        TaskRef(argument.cast())
    }

    pub(crate) fn as_ptr(self) -> *mut Header {
        self.0.as_ptr()
    }

    /// Returns the next task in the queue that this task is in.
    #[inline]
    pub(crate) fn next(self) -> Option<TaskRef> {
        // Relaxed: the queue's own synchronization orders it; a task is in one queue at a time.
        Self::from_ptr(self.header().next.load(Ordering::Relaxed))
    }

    /// Links the next task behind this one.
    ///
    /// Called by the party that queues the task, and by the queue.
    #[inline]
    pub(crate) fn set_next(self, next: Option<TaskRef>) {
        // Release: pairs with the Acquire in `noted_wait`.
        self.header().next.store(next.map_or(ptr::null_mut(), TaskRef::as_ptr), Ordering::Release);
    }

    /// Notes what the running task is about to wait for. A task that runs is in no queue, so `next` is free.
    #[inline(always)]
    pub(crate) fn set_record(self, record: *const WaitRecord) {
        // Relaxed: the wait word tells a reader whether it is still there.
        self.header().next.store(record.cast_mut().cast(), Ordering::Relaxed);
    }

    /// Returns the address of the record of what it waits for, if it sleeps.
    pub(crate) fn record(self) -> usize {
        // Relaxed: its reader looks at the wait word before and after.
        self.header().next.load(Ordering::Relaxed).addr()
    }

    /// Returns true if the task is asleep, and only tasks, threads and time may wake it: neither the system nor the pool.
    ///
    /// # Safety
    /// The caller is the home worker of the task, and runs no task.
    pub(crate) unsafe fn sleeps_for_tasks(self) -> bool {
        let is_asleep = self.header().waiter.word.why().is_asleep();
        // SAFETY: by this function's contract.
        is_asleep && unsafe { self.noted_wait() }.is_some_and(|wait| !wait.is_ended_by_outside())
    }

    /// Returns what the task sleeps for, or is about to. `None` if it was woken meanwhile.
    ///
    /// # Safety
    /// The task has left its stack for a sleep on the calling worker, which runs no task and has not resumed it since.
    pub(crate) unsafe fn noted_wait(self) -> Option<&'static WaitDescription> {
        let word = || self.header().waiter.word.why();
        let seen = word();
        // Acquire: pairs with the Release in `set_next`. A waker changes the word before it queues the task. So if this
        // is not the record that the task noted, the word has changed since. Before it counts as asleep, no waker queues it.
        let record = self.header().next.load(Ordering::Acquire).cast::<WaitRecord>();
        if (seen.asleep && seen.is_woken()) || word() != seen {
            return None;
        }
        // SAFETY: each sleep notes a record, which is a constant or lies in the frame of the sleep. The task does not
        // leave that frame before the caller resumes it.
        Some(unsafe { &*record }.description())
    }

    pub(crate) fn waiter(self) -> NonNull<Waiter> {
        self.0.cast()
    }

    pub(crate) fn timer(self) -> NonNull<Node> {
        // SAFETY: the task is alive, as in `header`. The pointer may lead back to all of it.
        unsafe { self.0.byte_add(offset_of!(Header, timer)) }.cast()
    }

    /// Returns the task that owns the timer.
    ///
    /// # Safety
    /// The pointer came from [`timer`](TaskRef::timer), and the task is alive.
    pub(crate) unsafe fn of_timer(node: NonNull<Node>) -> Self {
        // SAFETY: by the contract the node is that field of a header.
        TaskRef(unsafe { node.byte_sub(offset_of!(Header, timer)) }.cast())
    }

    /// Returns the header. Callers keep it no longer than they keep the task.
    #[inline]
    pub(crate) fn header<'a>(self) -> &'a Header {
        // SAFETY: every user of a `TaskRef` holds a count or relies on the runtime's count, which
        // is given up after the task has left every queue and its worker.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn retain(self) {
        self.header().refs.retain();
    }

    /// Gives up a count, and frees the task with the last one.
    ///
    /// # Safety
    /// The caller owns a count and does not use the task after this.
    pub(crate) unsafe fn release(self) {
        let header = self.header();
        if header.refs.release() {
            // SAFETY: this was the last count.
            unsafe { (header.vtable.free)(self) }
        }
    }
}
