//! What both sides of a oneshot channel share, and how one side waits for the other.
//!
//! Each side ends once: the sender with or without a value, the receiver when it wants no more. The other side waits for that in
//! the queue, or leaves a waker if it is polled. All of it is under one lock; values and wakers leave it to be dropped or called.

use std::mem;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::wait::{self, Admit, Outcome, Until, WaitQueue};

/// A side of the channel. Its number is the lane in which it waits for the other side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Sender,
    Receiver,
}

/// The value, and the two sides.
pub(super) struct Channel<T>(WaitQueue<State<T>, (), 2>);

pub(super) struct State<T> {
    value: Option<T>,
    sides: [Ends; 2],
}

/// One side as the other sees it.
struct Ends {
    has_ended: bool,
    /// To be called when the other side ends.
    waker: Option<Waker>,
}

impl<T> State<T> {
    fn has_ended(&self, side: Side) -> bool {
        self.sides[side as usize].has_ended
    }

    /// True if no side waits for the other any more.
    fn is_over(&self) -> bool {
        self.has_ended(Side::Sender) || self.has_ended(Side::Receiver)
    }
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        }
    }
}

impl<T> Channel<T> {
    pub(super) const fn new() -> Self {
        let sides = [const { Ends { has_ended: false, waker: None } }; 2];
        Channel(WaitQueue::new(State { value: None, sides }))
    }

    /// Ends the sender with a value. Gives the value back if the receiver has ended.
    pub(super) fn send(&self, value: T) -> Result<(), T> {
        self.end(Side::Sender, |state| match state.has_ended(Side::Receiver) {
            true => Err(value),
            false => {
                state.value = Some(value);
                Ok(())
            }
        })
    }

    /// Ends the receiver, and takes the value if one was sent.
    pub(super) fn leave(&self) -> Option<T> {
        self.end(Side::Receiver, |state| state.value.take())
    }

    /// Ends a side after `act`, and wakes the other side.
    pub(super) fn end<R>(&self, side: Side, act: impl FnOnce(&mut State<T>) -> R) -> R {
        let (result, waker, unused) = self.0.with(|state, waiters| {
            let result = act(state);
            let [own, other] = [side, side.other()].map(|side| side as usize);
            if mem::replace(&mut state.sides[own].has_ended, true) {
                return (result, None, None);
            }
            waiters.serve_front(other, |()| ());
            (result, state.sides[other].waker.take(), state.sides[own].waker.take())
        });
        if let Some(waker) = waker {
            wait::call_waker(waker);
        }
        drop(unused);
        result
    }

    /// True if `side` has ended.
    #[inline]
    pub(super) fn has_ended(&self, side: Side) -> bool {
        self.0.with(|state, _| state.has_ended(side))
    }

    /// True if the receiver need not wait.
    #[inline]
    pub(super) fn has_outcome(&self) -> bool {
        self.0.with(|state, _| state.is_over())
    }

    /// True if a value was sent and not taken.
    pub(super) fn has_value(&self) -> bool {
        self.0.with(|state, _| state.value.is_some())
    }

    /// Waits as `me` until the other side has ended. False if the deadline came first.
    #[inline(always)]
    pub(super) fn wait(&self, me: Side, deadline: Option<Instant>) -> bool {
        let (is_over, unused) =
            self.0.with(|state, _| (state.is_over(), state.sides[me as usize].waker.take()));
        drop(unused);
        is_over || self.wait_slow(me, deadline)
    }

    #[inline(always)]
    fn wait_slow(&self, me: Side, deadline: Option<Instant>) -> bool {
        let (outcome, ()) = self.0.wait(
            me as usize,
            (),
            Until::unwind(deadline).spinning(),
            |state, (), _| match state.is_over() {
                true => Admit::Done(()),
                false => Admit::Back,
            },
            || (),
            |_, (), _, _| (),
        );
        matches!(outcome, Outcome::Done(()) | Outcome::Served)
    }

    /// Polls as `me` whether the other side has ended; its end calls the waker of the last poll.
    pub(super) fn poll(&self, me: Side, cx: &Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let (poll, former) = self.0.with(|state, _| match state.is_over() {
            true => (Poll::Ready(()), Some(waker)),
            false => (Poll::Pending, state.sides[me as usize].waker.replace(waker)),
        });
        drop(former);
        poll
    }
}
