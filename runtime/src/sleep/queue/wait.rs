//! One wait in a queue: admitted or queued, then served or gone.

use std::cell::{Cell, UnsafeCell};
use std::mem;
use std::process;
use std::time::Instant;

use crate::sleep::cancel_points::unwind_cancelled;
use crate::sleep::queue::lane::{Entry, Served};
use crate::sleep::queue::waiters::Waiters;
use crate::sleep::queue::{Inner, WaitQueue};
use crate::sleep::task_sleep::{sleep, sleep_or_cancel, sleep_shielded};
use crate::waiter::description::{WaitDescription, WaitRecord};
use crate::waiter::kind::WakeHandle;
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};

/// Describes the waits in queues that no primitive has described.
pub(super) const UNNAMED: &WaitDescription = &WaitDescription::new("wait queue");

/// What ends a wait beside being served: a deadline, and a cancel of the task. Also says whether to spin first.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    deadline: Option<Instant>,
    on_cancel: OnCancel,
    spins: bool,
    description: &'static WaitDescription,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OnCancel {
    Unwind,
    UnwindLater,
    Report,
    Ignore,
}

impl Until {
    /// Waits to the deadline; a cancel unwinds, once `leave` has run.
    #[inline]
    pub const fn unwind(deadline: Option<Instant>) -> Self {
        Until { deadline, on_cancel: OnCancel::Unwind, spins: false, description: UNNAMED }
    }

    /// Waits to the deadline; a cancel returns [`Outcome::Cancelled`] to a caller that cleans up
    /// first.
    ///
    /// The caller then unwinds by [`unwind_cancelled`].
    #[inline]
    pub const fn unwind_later(deadline: Option<Instant>) -> Self {
        Until { deadline, on_cancel: OnCancel::UnwindLater, spins: false, description: UNNAMED }
    }

    /// Waits to the deadline; a cancel ends the wait with [`Outcome::Cancelled`].
    #[inline]
    pub const fn report(deadline: Option<Instant>) -> Self {
        Until { deadline, on_cancel: OnCancel::Report, spins: false, description: UNNAMED }
    }

    /// Waits to the deadline; a cancel does not end the wait.
    #[inline]
    pub const fn shielded(deadline: Option<Instant>) -> Self {
        Until { deadline, on_cancel: OnCancel::Ignore, spins: false, description: UNNAMED }
    }

    /// Says what is waited for.
    #[inline]
    pub const fn described(self, description: &'static WaitDescription) -> Self {
        Until { description, ..self }
    }

    /// Sleeps once.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn sleep(self, how: &impl WaitStrategy) -> Waking {
        match self.on_cancel {
            OnCancel::Unwind | OnCancel::UnwindLater => sleep(how, self.deadline),
            OnCancel::Report => sleep_or_cancel(how, self.deadline),
            OnCancel::Ignore => sleep_shielded(how, self.deadline),
        }
    }

    /// Returns true if a cancel that has ended the sleep unwinds.
    #[inline(always)]
    pub(crate) fn unwinds(self) -> bool {
        self.on_cancel == OnCancel::Unwind
    }

    /// Returns true if it spins before it blocks.
    pub(crate) fn spins(self) -> bool {
        self.spins
    }

    /// Spins for a moment before it blocks, where another worker may serve it soon.
    #[inline]
    pub const fn spinning(self) -> Self {
        Until { spins: true, ..self }
    }
}

/// What a primitive says to an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admit<R> {
    /// Does not wait, and returns this.
    Done(R),
    /// Waits behind all others in its lane.
    Back,
    /// Waits before all others in its lane.
    Front,
}

impl Admit<()> {
    /// Admits an arrival that is `ready`, and queues it behind all others otherwise.
    #[inline]
    pub fn if_ready(ready: bool) -> Self {
        if ready { Admit::Done(()) } else { Admit::Back }
    }
}

/// How a wait has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<R> {
    /// `admit` has said so.
    Done(R),
    /// A waker has served it, and may have written to its data.
    Served,
    /// The deadline has passed.
    TimedOut,
    /// The task was cancelled.
    Cancelled,
}

/// How a waiter leaves that does not return [`Outcome::Served`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// Nothing was given to it. Waiters behind it may now be served.
    Unserved,
    /// It was served, and does not take what it was given: a dropped future. Pass it on.
    Served,
}

impl<S, T, const LANES: usize> WaitQueue<S, T, LANES> {
    /// Blocks the caller, a task or a thread, until it is served. Returns its data as the waker has left it.
    ///
    /// * `admit` runs under the lock. What it serves is woken after it; if it then lets the caller wait, it runs again
    ///   once these wakes have landed.
    /// * `published` runs when the caller is queued and the lock is released, before the caller blocks. It must not wait.
    /// * `leave` runs under the lock when a deadline or a cancel ends the wait. What it serves is woken after it.
    #[inline(always)]
    #[track_caller]
    pub fn wait<R>(
        &self,
        lane: usize,
        data: T,
        until: Until,
        admit: impl FnMut(&mut S, &mut T, &mut Waiters<'_, T, LANES>) -> Admit<R>,
        published: impl FnOnce(),
        leave: impl FnOnce(&mut S, &mut T, &mut Waiters<'_, T, LANES>, Left),
    ) -> (Outcome<R>, T) {
        let waiting = Waiting::new(self, lane, data, until, admit, published, leave);
        let outcome = waiting.block(until);
        // SAFETY: the caller is the waiter, and the wait is over.
        (outcome, unsafe { waiting.entry.take_data() })
    }

    /// Variant of [`wait`](WaitQueue::wait) that lets `finish` make the result out of the data.
    ///
    /// So large data are moved straight into it, and lie on the stack once. What `finish` leaves is dropped.
    #[expect(clippy::too_many_arguments, reason = "those of `wait`, each by its own name")]
    #[inline(always)]
    #[track_caller]
    pub fn wait_then<R, O>(
        &self,
        lane: usize,
        data: T,
        until: Until,
        admit: impl FnMut(&mut S, &mut T, &mut Waiters<'_, T, LANES>) -> Admit<R>,
        published: impl FnOnce(),
        leave: impl FnOnce(&mut S, &mut T, &mut Waiters<'_, T, LANES>, Left),
        finish: impl FnOnce(Outcome<R>, &mut T) -> O,
    ) -> O {
        let mut waiting = Waiting::new(self, lane, data, until, admit, published, leave);
        let outcome = waiting.block(until);
        finish(outcome, waiting.entry.get_mut())
    }
}

impl<S, T: Default, const LANES: usize> WaitQueue<S, T, LANES> {
    /// Blocks the caller until `ready` says so or it is served. Returns false if a deadline or a cancel came first.
    ///
    /// `ready` runs under the lock.
    #[inline(always)]
    #[track_caller]
    pub fn wait_until(&self, lane: usize, until: Until, mut ready: impl FnMut(&mut S) -> bool) -> bool {
        let admit = |state: &mut S, _: &mut T, _: &mut Waiters<'_, T, LANES>| Admit::if_ready(ready(state));
        let outcome = self.wait(lane, T::default(), until, admit, || (), |_, _, _, _| ()).0;
        matches!(outcome, Outcome::Done(()) | Outcome::Served)
    }

    /// Blocks the caller until `ready` returns a value. Returns `None` if a deadline or a cancel came first.
    ///
    /// `ready` runs under the lock, and again each time that the caller is served.
    #[inline(always)]
    #[track_caller]
    pub fn wait_for<R>(
        &self,
        lane: usize,
        until: Until,
        mut ready: impl FnMut(&mut S) -> Option<R>,
    ) -> Option<R> {
        let mut value = None;
        loop {
            let look = |state: &mut S| {
                value = ready(state);
                value.is_some()
            };
            if !self.wait_until(lane, until, look) || value.is_some() {
                return value;
            }
        }
    }
}

/// A waiter: its entry, and what its primitive says.
pub(super) struct Waiting<'a, S, T, const LANES: usize, R, A, P, V> {
    record: WaitRecord<&'a WaitQueue<S, T, LANES>>,
    lane: usize,
    spins: bool,
    entry: Entry<T>,
    /// Used by `after_asleep` alone.
    admit: UnsafeCell<A>,
    published: Cell<Option<P>>,
    leave: Cell<Option<V>>,
    done: Cell<Option<R>>,
    /// Wakes that a hook owes: it must not wake.
    owed: Cell<Served<T>>,
}

/// Ends the process when it is dropped: a hook that unwinds leaves a sleep behind that is half published.
struct Unwinding;

impl Drop for Unwinding {
    fn drop(&mut self) {
        process::abort();
    }
}

/// Runs a hook. A panic in it ends the process, after its message.
#[inline(always)]
pub(crate) fn without_unwinding<R>(hook: impl FnOnce() -> R) -> R {
    let unwinding = Unwinding;
    let result = hook();
    mem::forget(unwinding);
    result
}

// SAFETY: before the sleep begins it is in no list; from then on it stays in place. Other threads
// reach its entry only, under the lock of the queue or by the chain of the thread that served it,
// and take from it `T` and `RawWake`, which are `Send`. All other fields belong to its waiter, and
// move with it.
unsafe impl<S: Send, T: Send, const LANES: usize, R: Send, A: Send, P: Send, V: Send> Send
    for Waiting<'_, S, T, LANES, R, A, P, V>
{
}

impl<'a, S, T, const LANES: usize, R, A, P, V> Waiting<'a, S, T, LANES, R, A, P, V>
where
    A: FnMut(&mut S, &mut T, &mut Waiters<'_, T, LANES>) -> Admit<R>,
    P: FnOnce(),
    V: FnOnce(&mut S, &mut T, &mut Waiters<'_, T, LANES>, Left),
{
    #[inline(always)]
    pub(super) fn new(
        queue: &'a WaitQueue<S, T, LANES>,
        lane: usize,
        data: T,
        until: Until,
        admit: A,
        published: P,
        leave: V,
    ) -> Self {
        assert!(lane < LANES, "a wait queue has no such lane");
        Waiting {
            record: WaitRecord::new(until.description, queue),
            lane,
            spins: until.spins,
            entry: Entry::new(data),
            admit: UnsafeCell::new(admit),
            published: Cell::new(Some(published)),
            leave: Cell::new(Some(leave)),
            done: Cell::new(None),
            owed: Cell::new(Served::new()),
        }
    }

    /// Blocks the caller until the wait is over.
    #[inline(always)]
    #[track_caller]
    fn block(&self, until: Until) -> Outcome<R> {
        loop {
            match self.settle(until.sleep(self)) {
                None => {}
                Some(Outcome::Cancelled) if until.unwinds() => unwind_cancelled(),
                Some(outcome) => return outcome,
            }
        }
    }

    /// After a sleep: lands the wakes that a hook owes, and says how the wait has ended. Returns
    /// `None` if it has not.
    #[inline(always)]
    pub(super) fn settle(&self, why: Waking) -> Option<Outcome<R>> {
        self.wake_owed();
        if self.entry.is_served() {
            return Some(Outcome::Served);
        }
        match (self.done.take(), why) {
            (Some(result), _) => Some(Outcome::Done(result)),
            (None, Waking::Notified) => None,
            (None, Waking::TimedOut) => Some(Outcome::TimedOut),
            (None, Waking::Cancelled) => Some(Outcome::Cancelled),
        }
    }

    /// Returns the data after the wait, which nothing passes on any more.
    ///
    /// # Safety
    /// The caller is the waiter, and the wait is over. The result is used alone.
    #[expect(clippy::mut_from_ref, reason = "the contract keeps the borrow alone")]
    pub(super) unsafe fn ended(&self) -> &mut T {
        drop(self.leave.take());
        // SAFETY: this function's contract.
        unsafe { self.entry.data_mut() }
    }

    /// Enters the queue, unless the primitive admits the caller without a wait.
    #[inline(always)]
    fn enter(&self, me: WakeHandle<'_>) -> Asleep {
        let mut served = Served::new();
        let mut inner = self.record.object().inner.lock();
        let Inner { state, lanes } = &mut *inner;
        // SAFETY: the hooks of a sleep run in sequence on its waiter's stack, and none of them runs
        // inside the closure.
        let admit = unsafe { &mut *self.admit.get() };
        // SAFETY: it is in no lane yet, so its waiter alone reaches the data.
        let data = unsafe { self.entry.data_mut() };
        let in_front = match admit(state, data, &mut Waiters::new(lanes, &mut served)) {
            Admit::Done(result) => {
                drop(inner);
                self.done.set(Some(result));
                self.owed.set(served);
                return Asleep::Rouse;
            }
            Admit::Back => false,
            Admit::Front => true,
        };
        if !served.is_empty() {
            // It runs again once the wakes have landed.
            drop(inner);
            self.owed.set(served);
            return Asleep::Rouse;
        }
        // SAFETY: the entry is in no lane and stays until the sleep is over, which is when it was removed by `before_awake`,
        // or has been woken; the lock is held. One entry is pushed in a sleep, and so one wake used: `before_awake` answers
        // `Served` once a waker has it.
        unsafe { lanes[self.lane].push(&self.entry, me.raw(), in_front) };
        drop(inner);
        if let Some(published) = self.published.take() {
            published();
        }
        Asleep::Stay
    }

    /// Takes the entry out of its lane. Returns false if it was served.
    #[inline(never)]
    fn leave_unserved(&self) -> bool {
        let mut served = Served::new();
        let mut inner = self.record.object().inner.lock();
        let Inner { state, lanes } = &mut *inner;
        // SAFETY: this lane is the one that the entry is pushed to; the lock is held.
        if !unsafe { lanes[self.lane].remove(&self.entry) } {
            return false;
        }
        if let Some(leave) = self.leave.take() {
            // SAFETY: it is in no lane, so its waiter alone reaches the data.
            let data = unsafe { self.entry.data_mut() };
            leave(state, data, &mut Waiters::new(lanes, &mut served), Left::Unserved);
        }
        drop(inner);
        self.owed.set(served);
        true
    }
}

impl<S, T, const LANES: usize, R, A, P, V> Waiting<'_, S, T, LANES, R, A, P, V> {
    #[inline(always)]
    fn wake_owed(&self) {
        drop(self.owed.replace(Served::new()));
    }
}

/// The end of a wait whose outcome is not taken.
pub(super) trait PassOn {
    /// Passes on what the waiter was given, if it was served and woken. Wakes what its departure has served.
    fn pass_on(&self);
}

impl<S, T, const LANES: usize, R, A, P, V> PassOn for Waiting<'_, S, T, LANES, R, A, P, V>
where
    V: FnOnce(&mut S, &mut T, &mut Waiters<'_, T, LANES>, Left),
{
    fn pass_on(&self) {
        self.wake_owed();
        if let Some(leave) = self.leave.take().filter(|_| self.entry.is_served()) {
            self.record.object().with(|state, waiters| {
                // SAFETY: it was served and has been woken, so its waiter alone reaches the data.
                leave(state, unsafe { self.entry.data_mut() }, waiters, Left::Served);
            });
        }
    }
}

impl<S, T, const LANES: usize, R, A, P, V> WaitStrategy for Waiting<'_, S, T, LANES, R, A, P, V>
where
    A: FnMut(&mut S, &mut T, &mut Waiters<'_, T, LANES>) -> Admit<R>,
    P: FnOnce(),
    V: FnOnce(&mut S, &mut T, &mut Waiters<'_, T, LANES>, Left),
{
    #[inline]
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        without_unwinding(|| self.enter(me))
    }

    #[inline]
    fn before_awake(&self, why: Waking) -> Withdrawal {
        match why == Waking::Notified || without_unwinding(|| self.leave_unserved()) {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }

    fn may_spin(&self) -> bool {
        self.spins
    }

    #[inline]
    fn record(&self) -> *const WaitRecord {
        self.record.address()
    }
}
