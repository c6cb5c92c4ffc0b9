//! Futures as waiters: a strategy that sleeps between two polls.
//!
//! ```text
//!  the future                                      the thread whose wake queues it
//!
//!  poll: under the lock of the waker,              takes the waker, under its lock
//!    notified: goes on                             released := true, the last touch of the cell
//!    else its waker takes the place of the last    calls the waker
//!  goes on, or goes away: until RELEASED ◀──────
//!  the cell is the next sleep's, or gone
//! ```
//!
//! A poll looks at the word under the lock of the waker. So either the poll finds the wake in the
//! word, or the waking thread finds the waker that the poll has left.
//!
//! The cell lies in the future, which is pinned, and stays until a raw wake has landed: a sleep
//! allocates nothing.

use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use crate::base::primitive::{AtomicBool, Mutex, MutexGuard, Ordering, yield_now};
use crate::waiter::kind::notify_by_word;
use crate::waiter::kind::{Kind, Waiter, WakeHandle};
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};
use crate::waiter::word::Fallen;

/// One sleep as its wakes see it.
#[repr(C)]
struct Cell {
    waiter: Waiter,
    /// Waker of the last poll. The wake takes it, or else the end of the sleep.
    waker: Mutex<Option<Waker>>,
    /// Set by the wake that queues the future, as its last touch of the cell.
    released: AtomicBool,
}

static KIND: Kind = Kind { notify: notify_by_word, queue };

/// One sleep of a [`WaitStrategy`] as a future: the first poll publishes it, the poll after its wake withdraws it.
///
/// Dropped between the two, it withdraws as well. The strategy then passes on a notification that
/// came meanwhile; [`Polled::withdraw`] reports it.
pub struct Polled<S: WaitStrategy> {
    how: S,
    state: State,
    cell: Cell,
    _pinned: std::marker::PhantomPinned,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Asleep,
    Done,
}

/// Tells whether the wake of a sleep runs `queue`, or came too early for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Landing {
    Queues,
    Leaves,
}

impl<S: WaitStrategy> Polled<S> {
    /// Makes a sleep that has not begun.
    #[inline(always)]
    pub fn new(how: S) -> Self {
        Polled { how, state: State::New, cell: Cell::new(), _pinned: std::marker::PhantomPinned }
    }

    /// Returns the strategy.
    pub fn strategy(&self) -> &S {
        &self.how
    }

    /// Resets a finished sleep, so that it can begin again.
    pub fn renew(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of `how`, the only part that is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        if this.state == State::Done {
            this.state = State::New;
        }
    }

    /// Ends the sleep early. Returns true if a notification has come.
    ///
    /// The caller then takes it or passes it on.
    pub fn withdraw(self: Pin<&mut Self>) -> bool {
        // SAFETY: nothing is moved out of `how`, the only part that is pinned.
        unsafe { self.get_unchecked_mut() }.withdraw_now()
    }

    fn withdraw_now(&mut self) -> bool {
        if std::mem::replace(&mut self.state, State::Done) != State::Asleep {
            return false;
        }
        let served = self.how.before_awake(Waking::Cancelled) == Withdrawal::Served;
        let cell = &self.cell;
        let notified = served || cell.waiter.word.why().notified;
        if notified {
            cell.await_landing(Landing::Queues);
        }
        drop(self.cell.take_waker());
        notified
    }
}

impl<S: WaitStrategy> Future for Polled<S> {
    type Output = Waking;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Waking> {
        // SAFETY: nothing is moved out of `how`, the only part that is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        match this.state {
            State::New => this.begin(cx.waker()),
            State::Asleep if !this.cell.poll(cx.waker()) => Poll::Pending,
            State::Asleep => this.finish(Landing::Queues),
            State::Done => panic!("a finished sleep was polled again"),
        }
    }
}

impl<S: WaitStrategy> Polled<S> {
    fn begin(&mut self, waker: &Waker) -> Poll<Waking> {
        self.cell.make_ready_for(waker.clone());
        _ = self.cell.waiter.word.begin(true);
        let stay = self.how.after_asleep(WakeHandle::new(NonNull::from(&self.cell).cast(), &()));
        self.state = State::Asleep;
        let roused = stay == Asleep::Rouse || self.cell.waiter.word.fall_asleep() == Fallen::Roused;
        if roused { self.finish(Landing::Leaves) } else { Poll::Pending }
    }

    fn finish(&mut self, landing: Landing) -> Poll<Waking> {
        self.state = State::Done;
        let served = self.how.before_awake(Waking::Notified) == Withdrawal::Served;
        if served || landing == Landing::Queues {
            self.cell.await_landing(landing);
        }
        drop(self.cell.take_waker());
        Poll::Ready(Waking::Notified)
    }
}

impl<S: WaitStrategy> Drop for Polled<S> {
    fn drop(&mut self) {
        self.withdraw_now();
    }
}

impl Cell {
    fn new() -> Self {
        Cell { waiter: Waiter::new(&KIND), waker: Mutex::new(None), released: AtomicBool::new(false) }
    }

    /// Prepares for a sleep that is about to begin.
    fn make_ready_for(&mut self, waker: Waker) {
        *self.waker.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(waker);
        self.released = AtomicBool::new(false);
    }

    /// Takes the waker that a sleep has not used.
    ///
    /// The drop of a waker is foreign code, so the caller drops it without the lock.
    fn take_waker(&self) -> Option<Waker> {
        self.lock().take()
    }

    /// Returns true once notified; until then keeps `waker`.
    fn poll(&self, waker: &Waker) -> bool {
        // Clones and drops of wakers are foreign code: none of it runs under the lock.
        let fresh = waker.clone();
        let mut kept = self.lock();
        if self.waiter.word.why().notified {
            return true;
        }
        let former = kept.replace(fresh);
        drop(kept);
        drop(former);
        false
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Spins until the wake that has unlinked this sleep is done with the cell.
    fn await_landing(&self, landing: Landing) {
        while !self.waiter.word.why().notified {
            yield_now();
        }
        // Acquire: pairs with the Release in `queue`.
        while landing == Landing::Queues && !self.released.load(Ordering::Acquire) {
            yield_now();
        }
    }
}

unsafe fn queue(waiter: NonNull<Waiter>) -> Option<Waker> {
    // SAFETY: a waiter of this kind is the first field of a `Cell`, whose sleep waits for `released` before the cell is used
    // again or goes away.
    let cell = unsafe { waiter.cast::<Cell>().as_ref() };
    let waker = cell.take_waker();
    // Release: pairs with the Acquire in `await_landing`. The last touch of the cell.
    cell.released.store(true, Ordering::Release);
    waker
}
