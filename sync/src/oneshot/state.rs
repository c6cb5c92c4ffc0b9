//! The shared state of a oneshot channel, and the waits of its two sides.
//!
//! Each side ends once: the sender with or without a value, the receiver when it wants none any
//! more. The peer waits for that in the queue, or leaves a waker if it is polled. One lock guards
//! the state. Values are dropped and wakers called after the unlock.
//!
//! The channel is one allocation, which the side that leaves second frees. A sender leaves as it ends.
//! So a receiver that was served knows that it is the second: the unlock, which is the sender's last
//! touch of the channel, comes before the wake.

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
    #[inline]
    pub(crate) fn send(self, value: T) -> Result<(), T> {
        self.leave_after(Side::Sender, |state, is_closed| match is_closed {
            true => Err(value),
            false => {
                state.value = Some(value);
                Ok(())
            }
        })
    }

    /// Leaves as the sender, without a value.
    #[inline(never)]
    pub(crate) fn hang_up(self) {
        self.leave_after(Side::Sender, |_, _| ());
    }

    /// Leaves as the receiver, with the value if one was sent.
    #[inline(never)]
    pub(crate) fn take(self) -> Option<T> {
        let channel = self.channel();
        // The sender leaves under the lock, and the unlock is its last touch: no lock is needed after that.
        if channel.has_ended(Side::Sender) && !channel.queue.is_locked() {
            // SAFETY: the sender has left, and this side does now.
            return unsafe { self.last() }.queue.get_mut().value.take();
        }
        self.leave_after(Side::Receiver, |state, _| state.value.take())
    }

    /// Leaves as `side` after `act`, which learns whether the peer has ended. Wakes the peer.
    #[inline(always)]
    fn leave_after<R>(self, side: Side, act: impl FnOnce(&mut State<T>, bool) -> R) -> R {
        let channel = self.channel();
        let (result, wakers) = channel.queue.with(|state, waiters| {
            let result = act(state, channel.has_ended(side.other()));
            let is_first = channel.note(ONE_LEFT);
            (result, is_first.then(|| channel.end(side, state, waiters)))
        });
        match wakers {
            Some(wakers) => wakers.call(),
            // SAFETY: both sides have left.
            None => drop(unsafe { self.last() }),
        }
        result
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

    /// Waits for the outcome, and leaves with it as the receiver. Returns `None` if the deadline came first.
    ///
    /// Takes the half out of its place once it has left.
    #[inline]
    pub(crate) fn receive(place: &mut Option<Self>, deadline: Option<Instant>) -> Option<Option<T>> {
        let channel = place.as_ref()?.channel();
        let served = match channel.is_over() {
            true => None,
            false => match channel.wait(Side::Receiver, deadline) {
                (Outcome::Served, given) => Some(given),
                (Outcome::Done(()), _) => None,
                (Outcome::TimedOut | Outcome::Cancelled, _) => return None,
            },
        };
        let half = place.take()?;
        let Some(given) = served else { return Some(half.take()) };
        // SAFETY: the sender, which has served this side, left under the same lock. Its wake has come since.
        drop(unsafe { half.last() });
        Some(given)
    }

    /// Waits until the receiver has ended. Returns false if the deadline came first.
    pub(crate) fn wait_closed(&self, deadline: Option<Instant>) -> bool {
        matches!(self.channel().wait(Side::Sender, deadline).0, Outcome::Done(()) | Outcome::Served)
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

    /// Waits as `me` until the peer ends. `Done` if a side has ended.
    #[inline(always)]
    fn wait(&self, me: Side, deadline: Option<Instant>) -> (Outcome<()>, Option<T>) {
        let mut unused = None;
        self.queue.wait(
            me as usize,
            None,
            Until::unwind(deadline).spinning().described(&ONESHOT),
            |state, _, _| {
                unused = state.wakers[me as usize].take();
                if self.is_over() { Admit::Done(()) } else { Admit::Back }
            },
            || (),
            |_, _, _, _| (),
        )
    }
}
