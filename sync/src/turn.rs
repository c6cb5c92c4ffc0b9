//! One sleeper's turn in the queue of a primitive: what is the same for all that hand something over under their lock.
//!
//! ```text
//!            enlist: nothing there       served: a waker took the node out
//!   APART ──────────────────────▶ queued ────────────────────────────────▶ SERVED ──▶ TAKEN    by the operation
//!     │                             │                                        ▲  │
//!     │                             └── timed out, cancelled, dropped ──▶ LEFT │  └─▶ passed on  when dropped
//!     └──────────── enlist: it was there, and is taken ────────────────────────┘
//! ```
//!
//! Hooks of a sleep wake nobody, so what a departure owes to others is done when the turn is dropped: something that was
//! served to a future which was dropped meanwhile is passed on, and who leaves unserved may let those behind go first.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use crate::wait::list::Node;
use crate::wait::{self, Asleep, Polled, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// What can be waited for with one node.
pub(crate) trait Queue {
    /// What a waiter tells its wakers.
    type Asks;

    /// Takes what is waited for, and answers false; or else queues the node.
    ///
    /// # Safety
    /// As for [`List::push_back`](wait::list::List::push_back).
    unsafe fn enlist(&self, node: &Node<Self::Asks>, wake: RawWake) -> bool;

    /// Takes the node out of the queue. False if a waker has done so.
    ///
    /// # Safety
    /// The node is in this queue or in none.
    unsafe fn withdraw(&self, node: &Node<Self::Asks>) -> bool;

    /// Gives to others what was served to a sleeper that does not take it.
    fn pass_on(&self, asks: &Self::Asks);

    /// Serves those whom a sleeper was in the way of that has left the queue unserved.
    fn departed(&self);
}

/// A place in the queue of `Q`.
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

// SAFETY: a node that is not `Send` is what keeps this from being so. Before its sleep a turn is in no list; from then on it
// stays in place, its node is only touched under the list's lock, and what the node holds (`RawWake`, `Asks`) is `Send`. The
// state is only touched by whoever owns the turn.
unsafe impl<Q: Queue<Asks: Send> + Sync> Send for Turn<'_, Q> {}

impl<'a, Q: Queue> Turn<'a, Q> {
    pub(crate) const fn new(queue: &'a Q, asks: Q::Asks) -> Self {
        Turn { queue, node: Node::with(asks), state: Cell::new(State::Apart) }
    }

    /// What the waiter asked for. Not while it is queued.
    pub(crate) fn asks(&self) -> &Q::Asks {
        self.node.data()
    }

    fn take(&self) {
        self.state.set(State::Taken);
    }
}

/// Waits for a turn as a future; `took` is told what was asked for. Dropped before its end it passes on what it was served.
pub(crate) async fn wait_async<Q: Queue, R>(queue: &Q, asks: Q::Asks, took: impl FnOnce(&Q::Asks) -> R) -> R {
    let mut sleep = pin!(Polled::new(Turn::new(queue, asks)));
    sleep.as_mut().await;
    sleep.strategy().take();
    took(sleep.strategy().asks())
}

/// Counts an operation of a future. If the task that polls it has used up its turn, the future gives way once.
pub(crate) async fn charge() {
    let mut gave_way = false;
    poll_fn(|context| match gives_way(&mut gave_way, context) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

/// Counts an operation at its first poll. True if the task that polls has used up its turn: the poll wakes itself and is to be
/// pending. Never twice, which `gave_way` remembers, since an executor of others does not know of turns.
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
