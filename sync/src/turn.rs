//! A waiter in the queue of a primitive that hands something over under its lock.
//!
//! ```text
//!            enlist: nothing there       served: a waker took the node out
//!   APART ──────────────────────▶ queued ────────────────────────────────▶ SERVED ──▶ TAKEN    by the operation
//!     │                             │                                        ▲  │
//!     │                             └── timed out, cancelled, dropped ──▶ LEFT │  └─▶ passed on  when dropped
//!     └──────────── enlist: it was there, and is taken ────────────────────────┘
//! ```
//!
//! Hooks of a sleep must not wake. So the drop of the waiter does what its departure owes to the
//! queue. What was served to a dropped future is passed on. A waiter that leaves unserved may have
//! held up the waiters behind it.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use crate::wait::list::Node;
use crate::wait::{self, Asleep, Polled, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// Queue of a primitive, in which a waiter has one node.
pub(crate) trait Queue {
    /// What a waiter tells its wakers.
    type Asks;

    /// Queues the node and returns true, or takes what it asks for and returns false.
    ///
    /// # Safety
    /// As for [`List::push_back`](wait::list::List::push_back).
    unsafe fn enlist(&self, node: &Node<Self::Asks>, wake: RawWake) -> bool;

    /// Takes the node out of the queue. Returns false if a waker has done so.
    ///
    /// # Safety
    /// The node is in this queue or in none.
    unsafe fn withdraw(&self, node: &Node<Self::Asks>) -> bool;

    /// Passes on what was served to a waiter that does not take it.
    fn pass_on(&self, asks: &Self::Asks);

    /// Serves the waiters that a waiter which left unserved has held up.
    fn departed(&self);
}

/// One waiter of the queue `Q`.
pub(crate) struct Turn<'a, Q: Queue> {
    queue: &'a Q,
    node: Node<Q::Asks>,
    state: Cell<State>,
}

#[derive(Clone, Copy)]
enum State {
    Apart,
    Left,
    Served,
    Taken,
}

// SAFETY: a node that is not `Send` is what keeps this from being so. Before its sleep a turn is in
// no list; from then on it stays in place, its node is only touched under the list's lock, and what
// the node holds (`RawWake`, `Asks`) is `Send`. Only the owner of the turn touches the state.
unsafe impl<Q: Queue<Asks: Send> + Sync> Send for Turn<'_, Q> {}

impl<'a, Q: Queue> Turn<'a, Q> {
    pub(crate) const fn new(queue: &'a Q, asks: Q::Asks) -> Self {
        Turn { queue, node: Node::with(asks), state: Cell::new(State::Apart) }
    }

    /// Returns what the waiter asked for. Not to be called while it is queued.
    pub(crate) fn asks(&self) -> &Q::Asks {
        self.node.data()
    }

    fn take(&self) {
        self.state.set(State::Taken);
    }
}

/// Waits in the queue as a future; `took` is told what was asked for.
///
/// A future that is dropped before its end passes on what it was served.
pub(crate) async fn wait_async<Q: Queue, R>(queue: &Q, asks: Q::Asks, took: impl FnOnce(&Q::Asks) -> R) -> R {
    let mut sleep = pin!(Polled::new(Turn::new(queue, asks)));
    sleep.as_mut().await;
    sleep.strategy().take();
    took(sleep.strategy().asks())
}

/// Counts an operation of a future, which yields once if the polling task has used up its tick.
pub(crate) async fn charge() {
    let mut gave_way = false;
    poll_fn(|context| match gives_way(&mut gave_way, context) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

/// Counts an operation at its first poll. Returns true if the polling task has used up its tick.
///
/// Then it wakes its own task, and the poll must return pending. It never does so twice in a row,
/// since a foreign executor does not know of ticks; `gave_way` remembers that.
pub(crate) fn gives_way(gave_way: &mut bool, context: &Context<'_>) -> bool {
    *gave_way = !*gave_way && wait::charge_poll();
    if *gave_way {
        context.waker().wake_by_ref();
    }
    *gave_way
}

impl<Q: Queue> WaitStrategy for Turn<'_, Q> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: the node is in no list, and stays in place until the sleep is over; a waker takes its wake out of it under
        // the queue's lock, and `before_awake` answers `Served` from then on. No other wake of this sleep is made.
        match unsafe { self.queue.enlist(&self.node, me.raw()) } {
            true => Asleep::Stay,
            false => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            self.state.set(State::Served);
            return Withdrawal::Withdrawn;
        }
        // SAFETY: the node is in this queue or in none.
        match unsafe { self.queue.withdraw(&self.node) } {
            true => {
                self.state.set(State::Left);
                Withdrawal::Withdrawn
            }
            false => {
                self.state.set(State::Served);
                Withdrawal::Served
            }
        }
    }
}

impl<Q: Queue> Drop for Turn<'_, Q> {
    fn drop(&mut self) {
        match self.state.get() {
            State::Apart | State::Taken => {}
            State::Left => self.queue.departed(),
            State::Served => self.queue.pass_on(self.node.data()),
        }
    }
}
