//! The shared state of a oneshot channel, and the waits of its two sides.
//!
//! Each side ends once: the sender with or without a value, the receiver when it wants none any
//! more. The peer waits for that in the queue, or leaves a waker if it is polled. One lock guards
//! the state. Values are dropped and wakers called after the unlock.
//!
//! The channel is one allocation, which the side that leaves second frees. A sender leaves as it ends.
//! So a receiver that was served knows that it is the second: the unlock, which is the sender's last
//! touch of the channel, comes before the wake.

use std::cell::Cell;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::primitive::{AtomicUsize, Ordering};
use crate::wait::{self, Admit, ArmPolicy, Outcome, QueueArm, Until, WaitDescription, WaitQueue, Waiters};

static ONESHOT: WaitDescription = WaitDescription::new("oneshot");

/// The lane of selects that wait for the sender to end. They leave the value where it is.
const SELECTS: usize = 2;

/// Names a side of the channel. Its number is the lane in which it waits for its peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// The hold of one side on a channel. Leaving gives it up.
pub struct Half<T>(NonNull<Channel<T>>);

/// Holds the value and the two sides. A waiting receiver is handed the value itself.
struct Channel<T> {
    /// The sides that have ended, and ONE_LEFT. Changes under the lock, and is read without it.
    word: AtomicUsize,
    queue: WaitQueue<State<T>, Option<T>, 3>,
}

/// The value, and wakers beside the waiters.
pub struct State<T> {
    value: Option<T>,
    /// The waker of each side, to be called when its peer ends.
    wakers: [Option<Waker>; 2],
}

const BOTH_SIDES: usize = 0b11;
const ONE_LEFT: usize = 0b100;

// SAFETY: a half reaches the channel by shared references, and by its last touch frees it. The queue hands out `T` and
// wakers to one thread at a time.
unsafe impl<T: Send> Send for Half<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Half<T> {}

impl Side {
    const fn other(self) -> Self {
        match self {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        }
    }

    const fn bit(self) -> usize {
        1 << self as usize
    }
}

/// Makes a channel: the halves of the sender and the receiver.
pub(crate) fn pair<T>() -> (Half<T>, Half<T>) {
    let state = State { value: None, wakers: [None, None] };
    let channel = Box::new(Channel { word: AtomicUsize::new(0), queue: WaitQueue::new(state) });
    let channel = NonNull::from(Box::leak(channel));
    (Half(channel), Half(channel))
}

impl<T> Half<T> {
    fn channel(&self) -> &Channel<T> {
        // SAFETY: this side has not left, so its peer has not freed the channel.
        unsafe { self.0.as_ref() }
    }

    /// Sends the value and leaves. Gives the value back if the receiver has ended.
    ///
    /// No closure carries the value, which may be large.
    #[inline]
    pub(crate) fn send(self, value: T) -> Result<(), T> {
        let channel = self.channel();
        let mut queue = channel.queue.lock_or_first(|| ()).serving();
        let (state, mut waiters) = queue.parts();
        let is_closed = channel.has_ended(Side::Receiver);
        if is_closed {
            let left = channel.leave(Side::Sender, state, &mut waiters);
            drop(queue);
            self.finish(left);
            return Err(value);
        }
        state.value = Some(value);
        let left = channel.leave(Side::Sender, state, &mut waiters);
        drop(queue);
        self.finish(left);
        Ok(())
    }

    /// Leaves as `side`, without a value.
    #[inline(never)]
    pub(crate) fn hang_up(self, side: Side) {
        let channel = self.channel();
        let left = channel.queue.with(|state, waiters| channel.leave(side, state, waiters));
        self.finish(left);
    }

    /// Leaves as the receiver, with the value if one was sent, and with `closed` otherwise.
    #[inline(never)]
    pub(crate) fn take_or<E>(self, closed: E) -> Result<T, E> {
        let channel = self.channel();
        // The sender leaves under the lock, and the unlock is its last touch: no lock is needed after that.
        if channel.has_ended(Side::Sender) && !channel.queue.is_locked() {
            // SAFETY: the sender has left, and this side does now.
            let mut channel = unsafe { self.last() };
            return match channel.queue.get_mut().value.take() {
                Some(value) => Ok(value),
                None => Err(closed),
            };
        }
        let mut queue = channel.queue.lock_or_first(|| ()).serving();
        let (state, mut waiters) = queue.parts();
        let taken = match state.value.take() {
            Some(value) => Ok(value),
            None => Err(closed),
        };
        let left = channel.leave(Side::Receiver, state, &mut waiters);
        drop(queue);
        self.finish(left);
        taken
    }

    /// Completes a leave, after the lock. `None`: both sides have left.
    #[inline(always)]
    fn finish(self, left: Option<Wakers>) {
        match left {
            Some(wakers) => wakers.call(),
            // SAFETY: both sides have left.
            None => drop(unsafe { self.last() }),
        }
    }

    /// Takes the channel over.
    ///
    /// # Safety
    /// Both sides have left.
    unsafe fn last(self) -> Box<Channel<T>> {
        // SAFETY: the channel came from a box, and no other half reaches it any more.
        unsafe { Box::from_raw(self.0.as_ptr()) }
    }

    /// Ends the receiver, which stays.
    pub(crate) fn close(&self) {
        let channel = self.channel();
        channel.queue.with(|state, waiters| channel.end(Side::Receiver, state, waiters)).call();
    }

    /// Waits for the outcome, and leaves with it as the receiver. `closed` stands for no value, and `late` makes the error after
    /// the deadline.
    ///
    /// Takes the half out of its place once it has left. The value goes straight into the result, since it may be large.
    #[inline]
    pub(crate) fn receive<E: Copy>(
        place: &mut Option<Self>,
        deadline: Option<Instant>,
        closed: E,
        late: impl FnOnce() -> E,
    ) -> Result<T, E> {
        if let Some(half) = place.take_if(|half| half.channel().is_over()) {
            return half.take_or(closed);
        }
        let leaving = Leaving { place, how: Cell::new(Outcome::TimedOut) };
        let Some(half) = &*leaving.place else { return Err(closed) };
        half.channel().wait_then(Side::Receiver, deadline, |outcome, given| {
            leaving.how.set(outcome);
            match given.take() {
                Some(value) => Ok(value),
                None if matches!(outcome, Outcome::Served | Outcome::Done(())) => Err(closed),
                None => Err(late()),
            }
        })
    }

    /// Waits until the receiver has ended. Returns false if the deadline came first.
    pub(crate) fn wait_closed(&self, deadline: Option<Instant>) -> bool {
        let has_ended = |outcome| matches!(outcome, Outcome::Done(()) | Outcome::Served);
        self.channel().wait_then(Side::Sender, deadline, |outcome, _| has_ended(outcome))
    }

    /// Returns true if the receiver has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.channel().has_ended(Side::Receiver)
    }

    /// Returns true if the receiver need not wait.
    pub(crate) fn has_outcome(&self) -> bool {
        self.channel().is_over()
    }

    /// Makes an arm of a select for the end of the sender.
    pub(crate) fn arm(&self) -> QueueArm<'_, State<T>, Option<T>, 3, Self> {
        QueueArm::new(&self.channel().queue, SELECTS, None, self).described(&ONESHOT)
    }

    /// Returns true if a value was sent and not taken.
    pub(crate) fn has_value(&self) -> bool {
        self.channel().queue.with(|state, _| state.value.is_some())
    }

    /// Polls as `me` whether a side has ended; the end of the peer calls the waker of the last poll.
    pub(crate) fn poll(&self, me: Side, cx: &Context<'_>) -> Poll<()> {
        let channel = self.channel();
        // An end is final: a look without the lock may find it.
        if channel.is_over() {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        let (poll, former) = channel.queue.with(|state, _| match channel.is_over() {
            true => (Poll::Ready(()), Some(waker)),
            false => (Poll::Pending, state.wakers[me as usize].replace(waker)),
        });
        drop(former);
        poll
    }
}

impl<T> ArmPolicy<State<T>, Option<T>, 3> for Half<T> {
    fn is_ready(&self, _: &State<T>, _: &mut Option<T>, _: &Waiters<'_, Option<T>, 3>) -> bool {
        self.has_outcome()
    }
}

/// Wakers to call and to drop once the lock is released.
#[must_use]
struct Wakers {
    peer: Option<Waker>,
    /// Its side waits no more.
    unused: Option<Waker>,
}

impl Wakers {
    fn call(self) {
        if let Some(waker) = self.peer {
            wait::call_waker(waker);
        }
        drop(self.unused);
    }
}

impl<T> Channel<T> {
    fn word(&self) -> usize {
        // Acquire: pairs with the Release in `note`.
        self.word.load(Ordering::Acquire)
    }

    fn has_ended(&self, side: Side) -> bool {
        self.word() & side.bit() != 0
    }

    /// Returns true if a side has ended, so neither waits any more.
    fn is_over(&self) -> bool {
        self.word() & BOTH_SIDES != 0
    }

    /// Sets a bit, under the lock. Returns false if it was set already.
    fn note(&self, bit: usize) -> bool {
        let word = self.word();
        // Release: pairs with the Acquire in `word`.
        self.word.store(word | bit, Ordering::Release);
        word & bit == 0
    }

    /// Ends a side and serves its peer, under the lock.
    #[inline]
    fn end(&self, side: Side, state: &mut State<T>, waiters: &mut Waiters<'_, Option<T>, 3>) -> Wakers {
        let unused = state.wakers[side as usize].take();
        if !self.note(side.bit()) {
            return Wakers { peer: None, unused };
        }
        let peer = side.other() as usize;
        waiters.serve_front(peer, |given| *given = state.value.take());
        if side == Side::Sender {
            waiters.serve_all(SELECTS);
        }
        Wakers { peer: state.wakers[peer].take(), unused }
    }

    /// Leaves as `side`, under the lock. Returns `None` if the peer has left before.
    #[inline(always)]
    fn leave(
        &self,
        side: Side,
        state: &mut State<T>,
        waiters: &mut Waiters<'_, Option<T>, 3>,
    ) -> Option<Wakers> {
        self.note(ONE_LEFT).then(|| self.end(side, state, waiters))
    }

    /// Waits as `me` until the peer ends: `finish` makes the result. `Done` if a side has ended.
    ///
    /// A value that was sent is with the waiter then.
    #[inline(always)]
    fn wait_then<R>(
        &self,
        me: Side,
        deadline: Option<Instant>,
        finish: impl FnOnce(Outcome<()>, &mut Option<T>) -> R,
    ) -> R {
        let mut unused = None;
        self.queue.wait_then(
            me as usize,
            None,
            Until::unwind(deadline).spinning().described(&ONESHOT),
            |state, given, _| {
                unused = state.wakers[me as usize].take();
                if !self.is_over() {
                    return Admit::Back;
                }
                if me == Side::Receiver {
                    *given = state.value.take();
                }
                Admit::Done(())
            },
            || (),
            |_, _, _, _| (),
            finish,
        )
    }
}

/// Takes the half of a receiver out of its place once its wait is over, and leaves.
struct Leaving<'a, T> {
    place: &'a mut Option<Half<T>>,
    /// How the wait has ended.
    how: Cell<Outcome<()>>,
}

impl<T> Drop for Leaving<'_, T> {
    fn drop(&mut self) {
        let how = self.how.get();
        if let Outcome::TimedOut | Outcome::Cancelled = how {
            return;
        }
        let Some(half) = self.place.take() else { return };
        match how {
            // SAFETY: the sender, which has served this side, left under the same lock. Its wake has come since.
            Outcome::Served => drop(unsafe { half.last() }),
            _ => half.hang_up(Side::Receiver),
        }
    }
}
