//! What both sides of a oneshot channel do: listen, speak, and leave.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::word::{How, Side, Spoken, Then, Word};
use crate::wait::{self, Asleep, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal};

/// The one allocation of a channel.
struct Channel<T> {
    word: Word,
    /// The sender's until it has spoken, then the receiver's.
    value: UnsafeCell<Option<T>>,
    /// Each is its side's, except between its `listen` and its `unlisten`, when it is of who speaks.
    sender: Slot,
    receiver: Slot,
}

type Slot = UnsafeCell<Option<Listener>>;

/// How a side is told of the other's word.
enum Listener {
    Sleeper(RawWake),
    Poller(Waker),
}

/// One side's hold on a channel. It is given up by one of the methods that take `self`, not by a drop.
pub(super) struct Half<T> {
    channel: NonNull<Channel<T>>,
    side: Side,
}

/// Makes a channel and its two halves.
pub(super) fn pair<T>() -> (Half<T>, Half<T>) {
    let empty = || UnsafeCell::new(None);
    let channel =
        Channel { word: Word::new(), value: UnsafeCell::new(None), sender: empty(), receiver: empty() };
    let channel = NonNull::from(Box::leak(Box::new(channel)));
    (Half { channel, side: Side::Sender }, Half { channel, side: Side::Receiver })
}

impl<T> Half<T> {
    fn channel(&self) -> &Channel<T> {
        // SAFETY: the channel is alive until both sides have left, and this one leaves by giving this half up.
        unsafe { self.channel.as_ref() }
    }

    fn slot(&self, side: Side) -> *mut Option<Listener> {
        match side {
            Side::Sender => self.channel().sender.get(),
            Side::Receiver => self.channel().receiver.get(),
        }
    }

    /// True if the other side has spoken.
    #[inline]
    pub(super) fn hears(&self) -> bool {
        self.channel().word.hears(self.side)
    }

    /// True if this side has spoken.
    pub(super) fn has_spoken(&self) -> bool {
        self.channel().word.has_spoken(self.side)
    }

    /// Where the value is.
    ///
    /// Touched by the sender before it speaks, by the receiver once it hears that.
    pub(super) fn value(&self) -> *mut Option<T> {
        self.channel().value.get()
    }

    /// Sleeps until the other side speaks.
    #[inline(always)]
    pub(super) fn sleep(&mut self, deadline: Option<Instant>) -> Waking {
        drop(self.forget_waker());
        wait::sleep(&UntilHeard { half: self }, deadline)
    }

    /// Ready when the other side has spoken; else `cx` is called when it does.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.hears() {
            return Poll::Ready(());
        }
        // The clone is code of the user's, and comes before anything is changed.
        let waker = cx.waker().clone();
        let former = self.forget_waker();
        if self.hears() {
            // The other side may be about to empty the slot.
            return Poll::Ready(());
        }
        let slot = self.slot(self.side);
        // SAFETY: this side does not listen, and the other, which has not spoken, did not take that from it: so the slot
        // is its own. It is empty, or holds a used-up sleep.
        unsafe { *slot = Some(Listener::Poller(waker)) };
        let listens = self.channel().word.listen(self.side, How::Polled);
        drop(former);
        if listens {
            return Poll::Pending;
        }
        // SAFETY: as above, since it does not listen.
        drop(unsafe { (*slot).take() });
        Poll::Ready(())
    }

    /// Listens no more, if it did. The waker it was polled with.
    fn forget_waker(&mut self) -> Option<Listener> {
        let word = &self.channel().word;
        if !word.may_listen(self.side) || !word.unlisten(self.side) {
            return None;
        }
        // SAFETY: the slot is this side's own again.
        unsafe { (*self.slot(self.side)).take() }
    }

    /// Says this side's word and stays.
    pub(super) fn speak(&mut self) {
        let spoken = self.channel().word.speak(self.side, Then::Stays);
        if matches!(spoken, Spoken::Rouse | Spoken::Call) {
            // SAFETY: the slot is this side's to empty, by the answer of `speak`.
            wake(unsafe { self.take_other() });
        }
    }

    /// Says this side's word and leaves, unless the other side has spoken. The value, as [`leave`](Half::leave) gives it.
    pub(super) fn speak_first_and_leave(self) -> Result<Option<T>, Self> {
        match self.channel().word.speak_first(self.side, Then::Leaves) {
            Some(spoken) => Ok(self.left(spoken)),
            None => Err(self),
        }
    }

    /// Leaves, and says this side's word, if it has not. The value, if this was the last to leave and nobody has taken it.
    pub(super) fn leave(mut self) -> Option<T> {
        let former = self.forget_waker();
        let spoken = self.channel().word.speak(self.side, Then::Leaves);
        let left_over = self.left(spoken);
        drop(former);
        left_over
    }

    fn left(self, spoken: Spoken) -> Option<T> {
        match spoken {
            Spoken::Unheard => None,
            // SAFETY: this side has left and was the last.
            Spoken::Last => unsafe { self.free() },
            Spoken::Rouse => {
                // SAFETY: the slot is this side's to empty; the sleeper stays until its wake has landed, and the channel
                // with it.
                wake(unsafe { self.take_other() });
                None
            }
            Spoken::Call => {
                // SAFETY: the slot is this side's to empty, which has not left yet.
                let listener = unsafe { self.take_other() };
                let left_over = match self.channel().word.leave(self.side) {
                    // SAFETY: as above.
                    true => unsafe { self.free() },
                    false => None,
                };
                wake(listener);
                left_over
            }
        }
    }

    /// # Safety
    /// By the answer of `speak` this side has what is in the other's slot, and the channel is alive.
    unsafe fn take_other(&self) -> Option<Listener> {
        // SAFETY: the caller's contract.
        unsafe { (*self.slot(self.side.other())).take() }
    }

    /// # Safety
    /// Both sides have left.
    unsafe fn free(&self) -> Option<T> {
        // SAFETY: nobody else touches the channel any more; it came from a box.
        unsafe { Box::from_raw(self.channel.as_ptr()) }.value.into_inner()
    }
}

fn wake(listener: Option<Listener>) {
    match listener {
        Some(Listener::Sleeper(wake)) => wake.wake(),
        Some(Listener::Poller(waker)) => wait::call_waker(waker),
        None => unreachable!("who listens has filled its slot"),
    }
}

/// One sleep until the other side speaks.
struct UntilHeard<'a, T> {
    half: &'a Half<T>,
}

impl<T> WaitStrategy for UntilHeard<'_, T> {
    #[inline(never)]
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let half = self.half;
        if half.hears() {
            // The other side may be about to empty the slot.
            return Asleep::Rouse;
        }
        // SAFETY: this side does not listen, and the other, which has not spoken, did not take that from it: so the slot
        // is its own, and holds no waker (`Half::sleep`). The raw wake is used by who takes it out after this side's bit
        // is gone, from when on `before_awake` answers `Served`.
        unsafe { *half.slot(half.side) = Some(Listener::Sleeper(me.raw())) };
        match half.channel().word.listen(half.side, How::Asleep) {
            true => Asleep::Stay,
            false => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified || self.half.channel().word.unlisten(self.half.side) {
            return Withdrawal::Withdrawn;
        }
        Withdrawal::Served
    }

    fn may_spin(&self) -> bool {
        true
    }
}
