//! The shared state of a oneshot channel, and the waits of its two sides.
//!
//! Each side ends once: the sender with or without a value, the receiver when it wants none any
//! more. The peer waits for that in the queue, or leaves a waker if it is polled. One lock guards
//! the state. Values are dropped and wakers called after the unlock.

#![forbid(unsafe_code)]

use std::mem;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::wait::{self, Admit, Outcome, Until, WaitDescription, WaitQueue};

/// Names a side of the channel. Its number is the lane in which it waits for its peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Sender,
    Receiver,
}

/// Holds the value and the two sides. A waiting receiver is handed the value itself.
pub(super) struct Channel<T>(WaitQueue<State<T>, Option<T>, 2>);

pub(super) struct State<T> {
    value: Option<T>,
    sides: [Ends; 2],
}

/// State of one side.
struct Ends {
    has_ended: bool,
    /// To be called when the peer ends.
    waker: Option<Waker>,
}

impl<T> State<T> {
    fn has_ended(&self, side: Side) -> bool {
        self.sides[side as usize].has_ended
    }

    /// Ends the receiver if there is an outcome, and takes the value.
    fn receive(&mut self) -> Option<Option<T>> {
        if !self.is_over() {
            return None;
        }
        self.sides[Side::Receiver as usize].has_ended = true;
        Some(self.value.take())
    }

    fn take_waker(&mut self, side: Side) -> Option<Waker> {
        self.sides[side as usize].waker.take()
    }

    /// Returns true if a side has ended, so neither waits any more.
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

    /// Waits for the value, and ends the receiver. Returns `None` if the deadline came first.
    #[inline(always)]
    pub(super) fn receive(&self, deadline: Option<Instant>) -> Option<Option<T>> {
        let (outcome, unused) = self.0.with(|state, _| (state.receive(), state.take_waker(Side::Receiver)));
        drop(unused);
        match outcome {
            Some(outcome) => Some(outcome),
            None => self.wait(Side::Receiver, deadline, |state| state.receive()),
        }
    }

    /// Waits until the receiver has ended. Returns false if the deadline came first.
    pub(super) fn wait_closed(&self, deadline: Option<Instant>) -> bool {
        let unused = self.0.with(|state, _| state.take_waker(Side::Sender));
        drop(unused);
        self.wait(Side::Sender, deadline, |state| state.has_ended(Side::Receiver).then_some(None)).is_some()
    }

    /// Ends the receiver, and takes the value if one was sent.
    pub(super) fn leave(&self) -> Option<T> {
        self.end(Side::Receiver, |state| state.value.take())
    }

    /// Ends a side after `act`, and wakes its peer.
    pub(super) fn end<R>(&self, side: Side, act: impl FnOnce(&mut State<T>) -> R) -> R {
        let (result, waker, unused) = self.0.with(|state, waiters| {
            let result = act(state);
            let [own, other] = [side, side.other()].map(|side| side as usize);
            if mem::replace(&mut state.sides[own].has_ended, true) {
                return (result, None, None);
            }
            waiters.serve_front(other, |given| *given = state.value.take());
            (result, state.take_waker(side.other()), state.take_waker(side))
        });
        if let Some(waker) = waker {
            wait::call_waker(waker);
        }
        drop(unused);
        result
    }

    /// Returns true if `side` has ended.
    #[inline]
    pub(super) fn has_ended(&self, side: Side) -> bool {
        self.0.with(|state, _| state.has_ended(side))
    }

    /// Returns true if the receiver need not wait.
    #[inline]
    pub(super) fn has_outcome(&self) -> bool {
        self.0.with(|state, _| state.is_over())
    }

    /// Returns true if a value was sent and not taken.
    pub(super) fn has_value(&self) -> bool {
        self.0.with(|state, _| state.value.is_some())
    }

    /// Waits as `me` until there is an outcome, or the peer ends. Returns `None` at the deadline.
    #[inline(always)]
    fn wait(
        &self,
        me: Side,
        deadline: Option<Instant>,
        outcome: impl Fn(&mut State<T>) -> Option<Option<T>>,
    ) -> Option<Option<T>> {
        let (ended, given) = self.0.wait(
            me as usize,
            None,
            Until::unwind(deadline).spinning().described(const { &WaitDescription::new("oneshot") }),
            |state, _, _| outcome(state).map_or(Admit::Back, Admit::Done),
            || (),
            |_, _, _, _| (),
        );
        match ended {
            Outcome::Done(outcome) => Some(outcome),
            Outcome::Served => Some(given),
            Outcome::TimedOut | Outcome::Cancelled => None,
        }
    }

    /// Polls as `me` whether the peer has ended; the end calls the waker of the last poll.
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
