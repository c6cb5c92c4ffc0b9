//! One wait in a queue: admitted or queued, then served or gone.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use crate::sleep::cancel_points::unwind_cancelled;
use crate::sleep::queue::lane::{Entry, Served};
use crate::sleep::queue::waiters::Waiters;
use crate::sleep::queue::{Inner, WaitQueue};
use crate::sleep::task_sleep::{sleep, sleep_or_cancel, sleep_shielded};
use crate::waiter::kind::WakeHandle;
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};

/// What ends a wait beside being served: a deadline, and a cancel of the task. Also says whether to spin first.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    deadline: Option<Instant>,
    on_cancel: OnCancel,
    spins: bool,
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
        Until { deadline, on_cancel: OnCancel::Unwind, spins: false }
    }

    /// As [`unwind`](Until::unwind), but the wait returns [`Outcome::Cancelled`], for a caller that cleans up first.
    ///
    /// The caller then unwinds by [`unwind_cancelled`](crate::wait::unwind_cancelled).
    #[inline]
    pub const fn unwind_later(deadline: Option<Instant>) -> Self {
        Until { deadline, on_cancel: OnCancel::UnwindLater, spins: false }
    }

    /// Waits to the deadline; a cancel ends the wait with [`Outcome::Cancelled`].
    #[inline]
    pub const fn report(deadline: Option<Instant>) -> Self {
        Until { deadline, on_cancel: OnCancel::Report, spins: false }
    }

    /// Waits to the deadline; a cancel does not end the wait.
    #[inline]
    pub const fn shielded(deadline: Option<Instant>) -> Self {
        Until { deadline, on_cancel: OnCancel::Ignore, spins: false }
    }

    /// Sleeps once.
    #[inline(always)]
    pub(crate) fn sleep(self, how: &impl WaitStrategy) -> Waking {
        match self.on_cancel {
            OnCancel::Unwind | OnCancel::UnwindLater => sleep(how, self.deadline),
            OnCancel::Report => sleep_or_cancel(how, self.deadline),
            OnCancel::Ignore => sleep_shielded(how, self.deadline),
        }
    }

    /// True if a cancel that has ended the sleep unwinds.
    #[inline(always)]
    pub(crate) fn unwinds(self) -> bool {
        self.on_cancel == OnCancel::Unwind
    }

    /// True if it spins before it blocks.
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
    pub fn wait<R>(
        &self,
        lane: usize,
        data: T,
        until: Until,
        admit: impl FnMut(&mut S, &mut T, &mut Waiters<'_, T, LANES>) -> Admit<R>,
        published: impl FnOnce(),
        leave: impl FnOnce(&mut S, &mut T, &mut Waiters<'_, T, LANES>, Left),
    ) -> (Outcome<R>, T) {
        let waiting = Waiting::new(self, lane, data, until.spins, admit, published, leave);
        loop {
            match waiting.settle(until.sleep(&waiting)) {
                None => {}
                Some(Outcome::Cancelled) if until.unwinds() => unwind_cancelled(),
                // SAFETY: the caller is the waiter, and the wait is over.
                Some(outcome) => return (outcome, unsafe { waiting.entry.take_data() }),
            }
        }
    }
}

/// A waiter: its entry, and what its primitive says.
pub(super) struct Waiting<'a, S, T, const LANES: usize, R, A, P, V> {
    queue: &'a WaitQueue<S, T, LANES>,
    lane: usize,
    spins: bool,
    entry: Entry<T>,
    admit: Cell<Option<A>>,
    published: Cell<Option<P>>,
    leave: Cell<Option<V>>,
    done: Cell<Option<R>>,
    /// Wakes that a hook owes: it must not wake.
    owed: Cell<Served<T>>,
    /// A panic of a closure in a hook: a hook must not unwind.
    panic: Cell<Option<Box<dyn Any + Send>>>,
}

// SAFETY: before the sleep begins it is in no list; from then on it stays in place. Other threads reach its entry only,
// under the lock of the queue or by the chain of those who served it, and take from it `T` and `RawWake`, which are
// `Send`. All else belongs to its waiter, and goes along where that goes.
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
        spins: bool,
        admit: A,
        published: P,
        leave: V,
    ) -> Self {
        assert!(lane < LANES, "a wait queue has no such lane");
        Waiting {
            queue,
            lane,
            spins,
            entry: Entry::new(data),
            admit: Cell::new(Some(admit)),
            published: Cell::new(Some(published)),
            leave: Cell::new(Some(leave)),
            done: Cell::new(None),
            owed: Cell::new(Served::new()),
            panic: Cell::new(None),
        }
    }

    /// After a sleep: lands the wakes that a hook owes, and says how the wait has ended. `None` if it has not.
    #[inline(always)]
    pub(super) fn settle(&self, why: Waking) -> Option<Outcome<R>> {
        drop(self.owed.replace(Served::new()));
        if let Some(panic) = self.panic.take() {
            self.panic.set(Some(panic));
            self.pass_on();
        }
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

    /// Takes the data out.
    ///
    /// # Safety
    /// The caller is the waiter, and the wait is over.
    pub(super) unsafe fn take_data(&self) -> T {
        // The wait is over, so `leave` has nothing to do any more.
        drop(self.leave.take());
        // SAFETY: this function's contract.
        unsafe { self.entry.take_data() }
    }

    /// Takes the entry out of its lane. False if it was served.
    fn leave_unserved(&self) -> bool {
        let mut served = Served::new();
        let mut inner = self.queue.inner.lock();
        let Inner { state, lanes } = &mut *inner;
        // SAFETY: this lane is the one that the entry is pushed to; the lock is held.
        if !unsafe { lanes[self.lane].remove(&self.entry) } {
            return false;
        }
        if let Some(leave) = self.leave.take() {
            let mut waiters = Waiters::new(lanes, &mut served);
            // SAFETY: it is in no lane, so its waiter alone reaches the data.
            let data = unsafe { self.entry.data_mut() };
            let left = AssertUnwindSafe(|| leave(state, data, &mut waiters, Left::Unserved));
            self.note_panic(catch_unwind(left));
        }
        drop(inner);
        self.owed.set(served);
        true
    }

    fn note_panic(&self, outcome: Result<(), Box<dyn Any + Send>>) {
        if let Err(panic) = outcome {
            self.panic.set(Some(panic));
        }
    }

    #[cold]
    fn take_back(&self, panic: Box<dyn Any + Send>) -> Asleep {
        let is_left = self.leave_unserved();
        self.panic.set(Some(panic));
        // One that was served is woken soon.
        if is_left { Asleep::Rouse } else { Asleep::Stay }
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
        drop(self.owed.replace(Served::new()));
        if let Some(leave) = self.leave.take().filter(|_| self.entry.is_served()) {
            self.queue.with(|state, waiters| {
                // SAFETY: it was served and has been woken, so its waiter alone reaches the data.
                leave(state, unsafe { self.entry.data_mut() }, waiters, Left::Served);
            });
        }
        if let Some(panic) = self.panic.take() {
            resume_unwind(panic);
        }
    }
}

impl<S, T, const LANES: usize, R, A, P, V> WaitStrategy for Waiting<'_, S, T, LANES, R, A, P, V>
where
    A: FnMut(&mut S, &mut T, &mut Waiters<'_, T, LANES>) -> Admit<R>,
    P: FnOnce(),
    V: FnOnce(&mut S, &mut T, &mut Waiters<'_, T, LANES>, Left),
{
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let Some(mut admit) = self.admit.take() else { unreachable!("it is put back after each use") };
        let mut served = Served::new();
        let mut inner = self.queue.inner.lock();
        let Inner { state, lanes } = &mut *inner;
        let mut waiters = Waiters::new(lanes, &mut served);
        // SAFETY: it is in no lane yet, so its waiter alone reaches the data.
        let data = unsafe { self.entry.data_mut() };
        let admitted = catch_unwind(AssertUnwindSafe(|| admit(state, data, &mut waiters)));
        let is_queued = matches!(admitted, Ok(Admit::Back | Admit::Front)) && !waiters.has_served();
        if is_queued {
            // SAFETY: the entry is in no lane and stays until the sleep is over, which is when it was removed by
            // `before_awake`, or has been woken; the lock is held. One entry is pushed in a sleep, and so one wake used:
            // `before_awake` answers `Served` once a waker has it.
            unsafe { lanes[self.lane].push(&self.entry, me.raw(), matches!(admitted, Ok(Admit::Front))) };
        }
        drop(inner);
        self.admit.set(Some(admit));
        if is_queued {
            return match self.published.take().map(|published| catch_unwind(AssertUnwindSafe(published))) {
                Some(Err(panic)) => self.take_back(panic),
                Some(Ok(())) | None => Asleep::Stay,
            };
        }
        match admitted {
            Ok(Admit::Done(result)) => self.done.set(Some(result)),
            // It runs again once the wakes have landed.
            Ok(Admit::Back | Admit::Front) => {}
            Err(panic) => self.panic.set(Some(panic)),
        }
        self.owed.set(served);
        Asleep::Rouse
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        match why == Waking::Notified || self.leave_unserved() {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }

    fn may_spin(&self) -> bool {
        self.spins
    }
}
