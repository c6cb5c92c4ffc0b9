//! Futures as waiters: a strategy that sleeps between two polls.
//!
//! ```text
//!  the future                                      who has woken it asleep, by the word
//!
//!  poll: under the lock of the waker,              takes the waker, under its lock
//!    notified: goes on                             released := true, the last touch of the cell
//!    else its waker takes the place of the last    calls the waker
//!  goes on, or goes away: until RELEASED ◀──────
//!  the cell is the next sleep's, or freed
//! ```
//!
//! A poll looks at the word under the lock under which the waker is taken. So it finds the wake there, or the one who wakes finds
//! what the poll has left.

use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use super::word::Fallen;
use super::{Asleep, Kind, WaitStrategy, Waiter, WakeHandle, Waking, Withdrawal};
use crate::primitive::{Arc, AtomicBool, Mutex, MutexGuard, Ordering, yield_now};

/// The counted cell that wakers find a future by.
#[repr(C)]
struct Cell {
    waiter: Waiter,
    /// Who polls, as of the last poll. Taken by the one who wakes, or else by the end of the sleep: who keeps a wake of one
    /// that is over keeps nobody's waker.
    waker: Mutex<Option<Waker>>,
    /// Set by the one who was to queue the future, as the last thing it does here.
    released: AtomicBool,
}

static KIND: Kind = Kind { queue, retain, release };

/// One sleep of a [`WaitStrategy`] as a future: the first poll publishes it, the poll after its wake withdraws it.
///
/// Dropped between the two it withdraws as well. A notification that came meanwhile is then the strategy's to pass on:
/// [`Polled::withdraw`] tells.
pub struct Polled<S: WaitStrategy> {
    how: S,
    state: State,
    /// Of the sleep before this one, for the next.
    spare: Option<Arc<Cell>>,
    _pinned: std::marker::PhantomPinned,
}

enum State {
    New,
    Asleep(Arc<Cell>),
    Done,
}

/// Whether the wake of a sleep runs `queue`, or came too early for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Landing {
    Queues,
    Leaves,
}

impl<S: WaitStrategy> Polled<S> {
    /// Makes a sleep that has not begun.
    pub fn new(how: S) -> Self {
        Polled { how, state: State::New, spare: None, _pinned: std::marker::PhantomPinned }
    }

    /// The strategy.
    pub fn strategy(&self) -> &S {
        &self.how
    }

    /// Makes a sleep that is over one that has not begun, which then needs no allocation.
    pub fn renew(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of `how`, the only part that is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        if matches!(this.state, State::Done) {
            this.state = State::New;
        }
    }

    /// Ends the sleep early. True if a notification had come, which is then the caller's to take or to pass on.
    pub fn withdraw(self: Pin<&mut Self>) -> bool {
        // SAFETY: nothing is moved out of `how`, the only part that is pinned.
        unsafe { self.get_unchecked_mut() }.withdraw_now()
    }

    fn withdraw_now(&mut self) -> bool {
        let State::Asleep(cell) = std::mem::replace(&mut self.state, State::Done) else { return false };
        let served = self.how.before_awake(Waking::Cancelled) == Withdrawal::Served;
        let notified = served || cell.waiter.word.why().notified;
        if notified {
            cell.await_landing(Landing::Queues);
        }
        let unused = cell.lock().take();
        self.spare = Some(cell);
        drop(unused);
        notified
    }
}

impl<S: WaitStrategy> Future for Polled<S> {
    type Output = Waking;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Waking> {
        // SAFETY: nothing is moved out of `how`, the only part that is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        match &this.state {
            State::New => this.begin(cx.waker()),
            State::Asleep(cell) if !cell.poll(cx.waker()) => Poll::Pending,
            State::Asleep(_) => this.finish(Landing::Queues),
            State::Done => panic!("a finished sleep was polled again"),
        }
    }
}

impl<S: WaitStrategy> Polled<S> {
    fn begin(&mut self, waker: &Waker) -> Poll<Waking> {
        let cell = Cell::ready_for(waker.clone(), self.spare.take());
        let epoch = cell.waiter.word.begin(true);
        let stay = self.how.after_asleep(WakeHandle::new(Cell::waiter(&cell), epoch, &()));
        let roused = stay == Asleep::Rouse || cell.waiter.word.fall_asleep() == Fallen::Roused;
        self.state = State::Asleep(cell);
        if roused { self.finish(Landing::Leaves) } else { Poll::Pending }
    }

    fn finish(&mut self, landing: Landing) -> Poll<Waking> {
        if let State::Asleep(cell) = std::mem::replace(&mut self.state, State::Done) {
            let served = self.how.before_awake(Waking::Notified) == Withdrawal::Served;
            if served || landing == Landing::Queues {
                cell.await_landing(landing);
            }
            let unused = cell.lock().take();
            self.spare = Some(cell);
            drop(unused);
        }
        Poll::Ready(Waking::Notified)
    }
}

impl<S: WaitStrategy> Drop for Polled<S> {
    fn drop(&mut self) {
        self.withdraw_now();
    }
}

impl Cell {
    /// A cell for a sleep that begins: the one of the sleep before, unless somebody has kept a wake of that.
    fn ready_for(waker: Waker, spare: Option<Arc<Cell>>) -> Arc<Cell> {
        if let Some(mut spare) = spare
            && let Some(cell) = Arc::get_mut(&mut spare)
        {
            *cell.waker.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(waker);
            cell.released = AtomicBool::new(false);
            return spare;
        }
        let (waiter, waker) = (Waiter::new(&KIND), Mutex::new(Some(waker)));
        Arc::new(Cell { waiter, waker, released: AtomicBool::new(false) })
    }

    fn waiter(cell: &Arc<Self>) -> NonNull<Waiter> {
        // SAFETY: `Arc::as_ptr` is never null.
        unsafe { NonNull::new_unchecked(Arc::as_ptr(cell).cast::<Waiter>().cast_mut()) }
    }

    /// True once notified; until then keeps `waker`.
    fn poll(&self, waker: &Waker) -> bool {
        // Clones and drops of wakers are code of others: none of it under the lock.
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

    /// Until the waker that has unlinked this sleep is done with it: a few instructions of its thread.
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
    // SAFETY: a waiter of this kind is the first field of a `Cell` in an `Arc`, which a raw waker's sleep keeps alive
    // until `released`, and a retained one counts.
    let cell = unsafe { waiter.cast::<Cell>().as_ref() };
    let waker = cell.lock().take();
    // Release: pairs with the Acquire in `await_landing`. The last touch of the cell.
    cell.released.store(true, Ordering::Release);
    waker
}

unsafe fn retain(waiter: NonNull<Waiter>) {
    // SAFETY: the pointer came from `Arc::as_ptr` of an `Arc` that is alive.
    unsafe { Arc::increment_strong_count(waiter.cast::<Cell>().as_ptr()) }
}

unsafe fn release(waiter: NonNull<Waiter>) {
    // SAFETY: as above, and the caller owns one count.
    unsafe { Arc::decrement_strong_count(waiter.cast::<Cell>().as_ptr()) }
}
