//! The shared state of a oneshot channel, and the waits of its two sides.
//!
//! Each side ends once: the sender with or without a value, the receiver when it wants none any
//! more. The peer waits for that in the queue, or leaves a waker if it is polled. One lock guards
//! the state. Wakers are called after the unlock.
//!
//! The channel is one allocation, which the side that leaves second takes over and frees. A sender leaves as it ends: so a
//! receiver whose wait is over leaves second, and moves the value once, out of the channel into its result.

use std::mem;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::primitive::{AtomicUsize, Ordering};
use crate::wait::{
    self, Admit, ArmPolicy, LockedQueue, Outcome, QueueArm, Until, WaitDescription, WaitQueue, Waiters,
};

static ONESHOT: WaitDescription = WaitDescription::new("oneshot");

/// A lane for each side.
const LANES: usize = 2;

/// Names a side of the channel. Its number is the lane in which it waits for its peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// The hold of one side on a channel. Leaving gives it up.
pub struct Half<T>(NonNull<Channel<T>>);

/// Holds the value and the two sides.
pub(crate) struct Channel<T> {
    /// The sides that have ended, and ONE_LEFT. Changes under the lock, and is read without it.
    word: AtomicUsize,
    queue: WaitQueue<State<T>, (), LANES>,
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
        let mut queue = channel.queue.lock_or_first(|| ());
        if channel.has_ended(Side::Receiver) {
            drop(queue);
            self.leave(Side::Sender);
            return Err(value);
        }
        // An assignment would drop what was there, and keep the value elsewhere meanwhile.
        mem::forget(queue.state().value.replace(value));
        let wakers = channel.leave(Side::Sender, queue);
        self.finish(wakers);
        Ok(())
    }

    /// Leaves as `side`, and wakes the peer. Returns the channel if the peer has left before.
    #[inline(never)]
    pub(crate) fn leave(self, side: Side) -> Option<Box<Channel<T>>> {
        let channel = self.channel();
        // The sender leaves under the lock, and the unlock is its last touch: no lock is needed after that.
        let is_second =
            side == Side::Receiver && channel.has_ended(Side::Sender) && !channel.queue.is_locked();
        let wakers = match is_second {
            true => None,
            false => channel.leave(side, channel.queue.lock_or_first(|| ())),
        };
        self.finish(wakers)
    }

    /// Leaves as the receiver, with the value if one was sent, and with `closed` otherwise.
    #[inline]
    pub(crate) fn take_or<E>(self, closed: E) -> Result<T, E> {
        match self.leave(Side::Receiver) {
            Some(mut channel) => channel.queue.get_mut().value.take().ok_or(closed),
            None => Err(closed),
        }
    }

    /// Calls the wakers for the first side that leaves. Returns the channel to the second, which has none.
    #[inline(always)]
    fn finish(self, wakers: Option<Wakers>) -> Option<Box<Channel<T>>> {
        match wakers {
            Some(wakers) => {
                wakers.call();
                None
            }
            // SAFETY: the channel came from a box. Both sides have left, so no other half reaches it any more.
            None => Some(unsafe { Box::from_raw(self.0.as_ptr()) }),
        }
    }

    /// Ends the receiver, which stays.
    pub(crate) fn close(&self) {
        let channel = self.channel();
        channel.queue.with(|state, waiters| channel.end(Side::Receiver, state, waiters)).call();
    }

    /// Waits as `me` until a side has ended. Returns false if the deadline came first.
    #[inline]
    pub(crate) fn wait(&self, me: Side, deadline: Option<Instant>) -> bool {
        let channel = self.channel();
        channel.is_over() || channel.wait(me, deadline)
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
    pub(crate) fn arm(&self) -> QueueArm<'_, State<T>, (), LANES, Self> {
        QueueArm::new(&self.channel().queue, Side::Receiver as usize, (), self).described(&ONESHOT)
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

impl<T> ArmPolicy<State<T>, (), LANES> for Half<T> {
    fn is_ready(&self, _: &State<T>, (): &mut (), _: &Waiters<'_, (), LANES>) -> bool {
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
    fn end(&self, side: Side, state: &mut State<T>, waiters: &mut Waiters<'_, (), LANES>) -> Wakers {
        let unused = state.wakers[side as usize].take();
        if !self.note(side.bit()) {
            return Wakers { peer: None, unused };
        }
        let peer = side.other() as usize;
        waiters.serve_all(peer);
        Wakers { peer: state.wakers[peer].take(), unused }
    }

    /// Leaves as `side`, under the lock. Returns `None` if the peer has left before.
    #[inline(always)]
    fn leave(&self, side: Side, queue: LockedQueue<'_, State<T>, (), LANES>) -> Option<Wakers> {
        queue.with(|state, waiters| self.note(ONE_LEFT).then(|| self.end(side, state, waiters)))
    }

    /// Waits as `me` until a side has ended. Returns false if the deadline came first.
    #[inline(always)]
    fn wait(&self, me: Side, deadline: Option<Instant>) -> bool {
        let mut unused = None;
        let (outcome, ()) = self.queue.wait(
            me as usize,
            (),
            Until::unwind(deadline).spinning().described(&ONESHOT),
            |state, (), _| {
                unused = state.wakers[me as usize].take();
                Admit::if_ready(self.is_over())
            },
            || (),
            |_, (), _, _| (),
        );
        matches!(outcome, Outcome::Done(()) | Outcome::Served)
    }
}
