//! The untyped part of a task.
//!
//! | field | who may touch it |
//! | --- | --- |
//! | `waiter.word`, `join`, `park`, `marks`, `refs` | anybody, by their own rules |
//! | `next` | who queues the task, then the queue, then who takes it out: exactly one at a time |
//! | `home` | written at the first run (a migratable task: at each run), read by who was told to queue the task; of one that is known to stay, by who wakes or marks it |
//! | `coroutine` | the worker that the task is on, and the task when it suspends |
//! | `timer`, `timed` | the worker that the task is on |
//! | `registered`, `slot` | written at the first run, read at the end, by the worker that runs it then |
//! | the rest of the cells | the running task itself, or its worker while it does not run |

use std::cell::{Cell, OnceCell};
use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::limit::MOST_WORKERS;
use crate::coroutine::stop::Stop;
use crate::coroutine::switch::Coroutine;
use crate::stack::handle::Stack;
use crate::tasks::bounds::Bound;
use crate::tasks::cancel_flags::Marks;
use crate::tasks::join_error::JoinError;
use crate::tasks::join_state::Join;
use crate::tasks::locals::{InheritedLocals, Locals};
use crate::tasks::parking::Parking;
use crate::tasks::refs::Refs;
use crate::tasks::slow_path_flags::{Quirk, Quirks};
use crate::tasks::switch_hook::{Hook, SwitchHook};
use crate::timer::ring;
use crate::timer::ring::Node;
use crate::waiter::kind::{Kind, Waiter};

/// How a task came to be.
pub(crate) struct Origin {
    /// How a waiter that is a task is woken.
    pub(crate) kind: &'static Kind,
    pub(crate) id: u64,
    pub(crate) nature: Nature,
    /// Name and stack size, for the few tasks that have their own.
    pub(crate) traits: Option<Box<Traits>>,
}

/// The worker that queues a task: the scheduler's [`Block`](crate::scheduler::block::Block), which this floor only points to.
pub(crate) enum Home {}

/// Where a task may run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Nature {
    /// Anywhere until its first run, then at home.
    #[default]
    Homing,
    /// On the worker that spawned it.
    Local,
    /// On another worker after each sleep.
    Migratable,
    /// As the first, for the library itself: no limit of tasks counts it.
    Servant,
    /// As the first, until its owner takes it back. No limit counts it, since its owner may wait for it.
    Forked,
    /// On a thread of the blocking pool.
    Blocking,
    /// On a thread of the second pool, for a call of the system that owns what it uses. The end of the runtime does not wait for it.
    Call,
}

impl Nature {
    /// True if it runs on one worker alone from the beginning.
    #[inline]
    pub(crate) fn is_local(self) -> bool {
        self == Nature::Local
    }

    /// True if the limit of tasks counts it.
    #[inline]
    pub(crate) fn is_counted(self) -> bool {
        !matches!(self, Nature::Servant | Nature::Forked)
    }
}

/// What a task was given by its builder.
#[derive(Default)]
pub(crate) struct Traits {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) sheltered: bool,
    pub(crate) inherited: Option<Mutex<InheritedLocals>>,
    pub(crate) on_switch: SwitchHook,
}

/// What the untyped rest of the runtime can do with a task.
pub(crate) struct VTable {
    /// Runs the closure to its end and completes the task. On the task's own stack, or on a thread of the pool.
    pub(crate) run: unsafe fn(TaskRef),
    /// Drops the closure un-run and completes the task with an error.
    pub(crate) discard: unsafe fn(TaskRef, JoinError),
    /// Moves the result of a done task to where the pointer shows: a `*mut Option<Result<T, JoinError>>`. Leaves `None` there
    /// if it was taken before.
    pub(crate) read: unsafe fn(TaskRef, NonNull<()>),
    /// Drops the result of a done task.
    pub(crate) drop_output: unsafe fn(TaskRef),
    /// Frees the allocation.
    pub(crate) free: unsafe fn(TaskRef),
    /// Somebody waits for its end, also where nobody has its handle.
    pub(crate) is_awaited: bool,
}

/// In the order of use: what every switch touches are the first 64 bytes. A sleeping task keeps all of it in memory, so what
/// only its running code needs lies on its stack, and what few tasks have in a box.
///
/// Rejected: to begin at a cache line. Tasks then are an even number of lines apart or much larger; when that was 384 bytes, they fell
/// on every other line of the caches, and a thousand that yield took 15 ns each instead of 13.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) waiter: Waiter,
    next: AtomicPtr<Header>,
    home: AtomicPtr<Home>,
    /// Innermost first, the scopes around the running code that may end early.
    pub(crate) bounds: Cell<*const Bound>,
    pub(crate) nature: Nature,
    started: Cell<bool>,
    /// What ended or may end the running code early.
    pub(crate) marks: Marks,
    /// The timer is armed.
    pub(crate) timed: Cell<bool>,
    pub(super) quirks: Quirks,
    pub(crate) unconstrained: Cell<bool>,
    /// Its stack is of the reserve.
    pub(crate) on_reserve: Cell<bool>,
    pub(crate) park: Parking,
    /// On the task's own stack. Its first part is the end of those 64 bytes.
    pub(crate) coroutine: Coroutine,
    refs: Refs,
    pub(crate) join: Join,
    pub(crate) vtable: &'static VTable,
    pub(crate) id: u64,
    pub(super) traits: Option<Box<Traits>>,
    /// The values of task-locals, from the first one on.
    locals: OnceCell<Box<Locals>>,
    /// The big stack that the task runs on; null on its own.
    pub(super) away: Cell<*const Coroutine>,
    /// How many panics of this task were under way when it was suspended, and are not in its thread's count now. Such a
    /// task may not change its thread.
    owed: Cell<u32>,
    /// How many guards forbid the running code to suspend.
    forbidden: Cell<u32>,
    /// Where the task is in the registry of a worker, and the index of that worker: the one that it started on.
    slot: Cell<u32>,
    registered: Cell<u16>,
    /// How often this task was unwound by its cancellation; stays at the most that can be counted.
    pub(crate) unwound: Cell<u16>,
    pub(crate) timer: Node,
}

const _: () = assert!(offset_of!(Header, coroutine) + size_of::<[usize; 2]>() <= 64);

// A part of the sum in `SCALING.md`.
const _: () = assert!(size_of::<Header>() - size_of::<Coroutine>() <= 144);

const _: () = assert!(MOST_WORKERS <= u16::MAX as usize);

impl Header {
    #[inline(always)]
    pub(crate) fn new(vtable: &'static VTable, mut origin: Origin) -> Self {
        let (mut locals, quirks, marks) = (OnceCell::new(), Quirks::none(), Marks::new());
        if let Some(traits) = &mut origin.traits {
            if let Some(inherited) = traits.inherited.take() {
                let inherited = inherited.into_inner().unwrap_or_else(PoisonError::into_inner);
                locals = Box::new(Locals::from(inherited)).into();
            }
            quirks.set(Quirk::HOOKED, traits.on_switch.is_set());
            if traits.sheltered {
                marks.set_sheltered();
            }
        }
        Header {
            waiter: Waiter::new(origin.kind),
            next: AtomicPtr::new(ptr::null_mut()),
            home: AtomicPtr::new(ptr::null_mut()),
            bounds: Cell::new(ptr::null()),
            nature: origin.nature,
            started: Cell::new(false),
            marks,
            timed: Cell::new(false),
            quirks,
            unconstrained: Cell::new(false),
            on_reserve: Cell::new(false),
            park: Parking::new(),
            coroutine: Coroutine::vacant(),
            refs: Refs::two(),
            join: Join::new(),
            vtable,
            id: origin.id,
            traits: origin.traits,
            locals,
            away: Cell::new(ptr::null()),
            owed: Cell::new(0),
            forbidden: Cell::new(0),
            slot: Cell::new(0),
            registered: Cell::new(0),
            unwound: Cell::new(0),
            timer: ring::Node::new(),
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.traits.as_ref()?.name.as_deref()
    }

    pub(crate) fn stack_size(&self) -> Option<usize> {
        self.traits.as_ref()?.stack_size
    }

    /// True if the end of the runtime leaves it alone: somebody who cannot be unwound counts on what it does.
    #[inline]
    pub(crate) fn is_sheltered(&self) -> bool {
        self.marks.is_sheltered()
    }

    /// Has the end of the runtime leave it alone, before anybody has seen it.
    pub(crate) fn shelter(&self) {
        self.marks.set_sheltered();
    }

    /// True if it runs in any case; see [`Builder::sheltered`](crate::api::builder::Builder::sheltered).
    pub(crate) fn runs_in_any_case(&self) -> bool {
        self.traits.as_ref().is_some_and(|traits| traits.sheltered)
    }

    /// The values of its task-locals. For the task itself, and for who ends it un-run.
    pub(crate) fn locals(&self) -> &Locals {
        self.locals.get_or_init(Box::default)
    }

    /// The same, if there ever were any.
    #[inline]
    pub(crate) fn present_locals(&self) -> Option<&Locals> {
        self.locals.get().map(Box::as_ref)
    }

    pub(crate) fn is_started(&self) -> bool {
        self.started.get()
    }

    pub(crate) fn set_started(&self) {
        self.started.set(true);
    }

    /// The block of the worker that queues this task.
    pub(crate) fn home(&self) -> *const Home {
        // Relaxed: read by who was told to queue the task, or has read in the wait word that it stays, or by its worker; all are
        // ordered after the store by that word, or by what has published the sleep.
        self.home.load(Ordering::Relaxed)
    }

    pub(crate) fn set_home(&self, home: *const Home) {
        // Relaxed: as above.
        self.home.store(home.cast_mut(), Ordering::Relaxed);
    }

    /// Notes where the task is registered.
    pub(crate) fn set_registered(&self, worker: usize, slot: u32) {
        self.registered.set(worker as u16);
        self.slot.set(slot);
    }

    /// The worker in whose registry the task is, and where there.
    pub(crate) fn registered(&self) -> (usize, u32) {
        (usize::from(self.registered.get()), self.slot.get())
    }

    /// True if it was suspended while panics of it were under way.
    #[inline(always)]
    pub(crate) fn is_owed(&self) -> bool {
        self.quirks.any(Quirk::OWED)
    }

    /// Counts panics that are under way, now that the task is off its thread.
    pub(crate) fn set_owed(&self, panics: u32) {
        self.owed.set(panics);
        self.quirks.set(Quirk::OWED, panics > 0);
    }

    /// Those that its thread has to count again before the task goes on.
    pub(crate) fn take_owed(&self) -> u32 {
        self.quirks.set(Quirk::OWED, false);
        self.owed.replace(0)
    }

    /// True if the code that runs must not suspend.
    #[inline(always)]
    pub(crate) fn is_forbidden(&self) -> bool {
        self.quirks.any(Quirk::FORBIDDEN)
    }

    /// How many guards forbid it to.
    pub(crate) fn times_forbidden(&self) -> u32 {
        self.forbidden.get()
    }

    /// Forbids the code that runs to suspend, until [`permit`](Header::permit) was called as often.
    pub(crate) fn forbid(&self) {
        self.forbidden.set(self.forbidden.get() + 1);
        self.quirks.set(Quirk::FORBIDDEN, true);
    }

    pub(crate) fn permit(&self) {
        self.forbidden.set(self.forbidden.get() - 1);
        self.quirks.set(Quirk::FORBIDDEN, self.forbidden.get() > 0);
    }

    /// Sets the big stack that the task runs on, and returns the previous one. Null stands for the task's own stack.
    pub(crate) fn change_stack(&self, to: *const Coroutine) -> *const Coroutine {
        self.quirks.set(Quirk::AWAY, !to.is_null());
        self.away.replace(to)
    }

    /// The stack that the task runs on.
    ///
    /// # Safety
    /// The task is the running one, and does not leave that stack while the reference is used.
    pub(crate) unsafe fn stack(&self) -> Option<&Stack> {
        // SAFETY: by this function's contract; a stack is not taken from who runs on it.
        unsafe { self.coroutine_on(self.away.get()).stack() }
    }

    /// # Safety
    /// Code of the task is on that big stack, and stays there while the reference is used. Null stands for the task's own.
    unsafe fn coroutine_on(&self, away: *const Coroutine) -> &Coroutine {
        // SAFETY: a big stack stays in place while code runs on it.
        unsafe { away.as_ref() }.unwrap_or(&self.coroutine)
    }

    /// Leaves that big stack; null stands for the task's own.
    ///
    /// # Safety
    /// The caller runs in this very task, on that stack.
    pub(crate) unsafe fn suspend_from(&self, away: *const Coroutine, stop: Stop) {
        // SAFETY: by this function's contract.
        unsafe { self.coroutine_on(away).suspend(stop) };
    }

    #[inline(always)]
    pub(crate) fn is_hooked(&self) -> bool {
        self.quirks.any(Quirk::HOOKED)
    }

    /// Takes the hook away, for the end of the task.
    pub(crate) fn unhook(&self) -> Option<Hook> {
        self.quirks.set(Quirk::HOOKED, false);
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

/// A pointer to a task whose life somebody vouches for: a queue, the registry, or a counted handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskRef(NonNull<Header>);

// SAFETY: what a pointer may do on another thread is said field by field at the head of this file.
unsafe impl Send for TaskRef {}
// SAFETY: as above.
unsafe impl Sync for TaskRef {}

impl TaskRef {
    pub(crate) fn new(header: NonNull<Header>) -> Self {
        TaskRef(header)
    }

    /// The task at that address, which [`as_ptr`](TaskRef::as_ptr) gave; `None` for null.
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

    /// The one behind it in the queue that the task is in.
    #[inline]
    pub(crate) fn next(self) -> Option<TaskRef> {
        // Relaxed: the queue's own synchronization orders it; a task is in one queue at a time.
        Self::from_ptr(self.header().next.load(Ordering::Relaxed))
    }

    /// Links another one behind it. By who queues the task, and by the queue.
    #[inline]
    pub(crate) fn set_next(self, next: Option<TaskRef>) {
        // Relaxed: as above.
        self.header().next.store(next.map_or(ptr::null_mut(), TaskRef::as_ptr), Ordering::Relaxed);
    }

    pub(crate) fn waiter(self) -> NonNull<Waiter> {
        self.0.cast()
    }

    pub(crate) fn timer(self) -> *const ring::Node {
        // SAFETY: the task is alive, as in `header`. The pointer may lead back to all of it.
        unsafe { &raw const (*self.as_ptr()).timer }
    }

    /// The task whose timer that is.
    ///
    /// # Safety
    /// The pointer came from [`timer`](TaskRef::timer), and the task is alive.
    pub(crate) unsafe fn of_timer(node: *const ring::Node) -> Self {
        // SAFETY: by the contract the node is that field of a header.
        TaskRef(unsafe { NonNull::new_unchecked(node.byte_sub(offset_of!(Header, timer)).cast_mut().cast()) })
    }

    /// The header, for as long as the voucher lasts. Callers keep it no longer than the task is theirs.
    #[inline]
    pub(crate) fn header<'a>(self) -> &'a Header {
        // SAFETY: a `TaskRef` is only used by those who hold a count, or whom the runtime's count serves: it is given
        // up after the task has left every queue and its worker.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn retain(self) {
        self.header().refs.retain();
    }

    /// Gives a count up, and frees the task with the last one.
    ///
    /// # Safety
    /// The caller owns a count and does not use the task after this.
    pub(crate) unsafe fn release(self) {
        let header = self.header();
        if header.refs.release() {
            // SAFETY: nobody else has a count.
            unsafe { (header.vtable.free)(self) }
        }
    }
}
