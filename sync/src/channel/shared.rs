//! A channel as both its sides share it: the state behind its lock, and the waits.
//!
//! Contended sides back off. If a channel has room for many messages and some lie in it, a side that finds the lock taken, by
//! another processor, pauses for a moment, and again before it waits. So the owner of the lock moves some thirty messages in its
//! own cache. Otherwise each message would carry the cache lines of the lock and the queue to and fro.
//!
//! Two words beside the lock are hints, which may be late or wrong:
//!
//! | word | set when | cleared when | cost of a wrong hint |
//! | --- | --- | --- | --- |
//! | `vacant` | a look found no message | a message was queued, or the end was found | a look, or a sleep that ends at once, since it looks under the lock |
//! | `contended` | a side found the lock taken while messages lay in the channel | a side waits | a pause, or none |

#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::Cell;
use std::hint::spin_loop;
use std::time::Instant;

use fibra_runtime::clock;

use super::error::{RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError};
use super::outcome::{Freed, Pairing, Put, Reserve, Take, Taken};
use super::places::{Receiving, Sending};
use super::queue::Block;
use super::state::State;
use super::timers::is_late;
use crate::crowd::Crowd;
use crate::primitive::{AtomicBool, Ordering};
use crate::turn::Queue;
use crate::wait::list::Node;
use crate::wait::{
    self, Asleep, Lock, LockGuard, Looks, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal,
};

/// Least capacity for a back-off. With less room the peer soon waits for the side that backs off.
const MANY: usize = 32;

/// Pauses after a failed attempt at the contended lock.
const PAUSES: u32 = 32;

/// The state of a channel, and the hints beside its lock.
pub(super) struct Shared<T> {
    state: Lock<State<T>>,
    /// True if the last look found no message, and none is known to be queued since. A hint: a receiver then goes to sleep
    /// without a look, since the sleep looks.
    vacant: AtomicBool,
    /// True if the lock was contended while messages lay here, since the last wait. A hint: a side then backs off before it
    /// waits.
    contended: AtomicBool,
    capacity: Option<usize>,
}

impl<T> Shared<T> {
    pub(super) fn new(capacity: Option<usize>) -> Self {
        Shared {
            state: Lock::new(State::new(capacity)),
            vacant: AtomicBool::new(true),
            contended: AtomicBool::new(false),
            capacity,
        }
    }

    pub(super) fn capacity(&self) -> Option<usize> {
        self.capacity
    }

    /// Returns true if this is no rendezvous.
    fn has_slots(&self) -> bool {
        self.capacity != Some(0)
    }

    pub(super) fn state(&self) -> LockGuard<'_, State<T>> {
        self.state.lock()
    }

    /// Locks the state for one message. Backs off if the lock is contended.
    #[inline]
    fn enter(&self) -> LockGuard<'_, State<T>> {
        self.state.lock_or_first(|| self.back_off())
    }

    #[cold]
    fn back_off(&self) {
        // Relaxed: hints. In an empty channel the peer is about to wait, and needs this side at
        // once.
        if self.capacity.is_none_or(|capacity| capacity >= MANY) && !self.vacant.load(Ordering::Relaxed) {
            self.contended.store(true, Ordering::Relaxed);
            (0..PAUSES).for_each(|_| spin_loop());
        }
    }

    /// Backs off if the lock was contended and there is time. Returns true if that made `done`
    /// true.
    #[inline]
    fn back_off_until(&self, deadline: Option<Instant>, done: impl Fn(&State<T>) -> bool) -> bool {
        // Relaxed: a hint.
        self.contended.load(Ordering::Relaxed) && self.back_off_slow(deadline, done)
    }

    #[cold]
    fn back_off_slow(&self, deadline: Option<Instant>, done: impl Fn(&State<T>) -> bool) -> bool {
        // Relaxed: a hint. The next wait needs a new one.
        self.contended.store(false, Ordering::Relaxed);
        deadline.is_none_or(|deadline| clock::now() < deadline)
            && wait::back_off_until(Looks::Seldom, || done(&self.state.lock()))
    }

    /// Sends without waiting.
    #[inline]
    pub(super) fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let put = self.enter().put(message);
        self.settle_put(put)
    }

    /// Receives without waiting, for a receiver that sleeps next. Does not look where there is likely no message.
    #[inline]
    pub(super) fn recv_unless_vacant(&self) -> Result<T, TryRecvError> {
        // Relaxed: a hint.
        match self.vacant.load(Ordering::Relaxed) && wait::may_suspend() {
            true => Err(TryRecvError::Empty),
            false => self.try_recv(),
        }
    }

    #[inline]
    fn settle_put(&self, put: Put<T>) -> Result<(), TrySendError<T>> {
        match put {
            Put::Queued { watched } => {
                // Relaxed: a hint.
                self.vacant.store(false, Ordering::Relaxed);
                if watched {
                    self.tell_receivers();
                }
                Ok(())
            }
            Put::Handed(wake) => {
                wake.wake();
                Ok(())
            }
            Put::Full(message) => Err(TrySendError::Full(message)),
            Put::Disconnected(message) => Err(TrySendError::Disconnected(message)),
            Put::Cramped(message) => self.enlarge_and_send(message),
        }
    }

    #[cold]
    fn enlarge_and_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let block = Block::new();
        let superfluous = self.state.lock().supply(block);
        drop(superfluous);
        self.try_send(message)
    }

    /// Waits until the message is queued or received.
    #[inline(never)]
    pub(super) fn send_slow(
        &self,
        mut message: T,
        deadline: Option<Instant>,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut may_send = self.back_off_until(deadline, State::may_send);
        loop {
            if may_send {
                match self.try_send(message) {
                    Ok(()) => return Ok(()),
                    Err(TrySendError::Disconnected(kept)) => {
                        return Err(SendTimeoutError::Disconnected(kept));
                    }
                    Err(TrySendError::Full(kept)) => message = kept,
                }
            }
            let until = UntilSent::new(self, message);
            let why = wait::sleep(&until, deadline);
            let Some(kept) = until.unsent() else { return Ok(()) };
            match why {
                Waking::Notified => {}
                Waking::TimedOut => return Err(SendTimeoutError::Timeout(kept)),
                Waking::Cancelled => wait::unwind_cancelled(),
            }
            message = kept;
            may_send = true;
        }
    }

    /// Receives without waiting, except for one select that makes its message, if the caller may be suspended.
    #[inline(never)]
    pub(super) fn try_recv(&self) -> Result<T, TryRecvError> {
        self.try_recv_from_one(None)
    }

    /// Variant of [`try_recv`](Shared::try_recv) that sets `let_down` if a select gave up.
    #[inline(always)]
    pub(super) fn try_recv_from_one(&self, let_down: Option<&Cell<bool>>) -> Result<T, TryRecvError> {
        self.take().unwrap_or_else(|| self.try_recv_from_arm(let_down))
    }

    /// Receives where a select waits to send. It is a partner at a rendezvous only; elsewhere it waits for room.
    #[cold]
    #[inline(never)]
    fn try_recv_from_arm(&self, let_down: Option<&Cell<bool>>) -> Result<T, TryRecvError> {
        if !self.has_slots() && wait::may_suspend() {
            match (self.recv_from_arm(), let_down) {
                (Some(message), _) => return Ok(message),
                (None, Some(let_down)) => let_down.set(true),
                (None, None) => {}
            }
        }
        self.try_recv_past_arms()
    }

    /// Receives without waiting, and passes over selects that wait to send.
    #[cold]
    fn try_recv_past_arms(&self) -> Result<T, TryRecvError> {
        let take = self.enter().take_past_arms();
        self.settle_take(take).unwrap_or(Err(TryRecvError::Empty))
    }

    /// Receives for a future, without waiting. Notifies the next future if messages are left.
    pub(super) fn try_recv_async(&self) -> Result<T, TryRecvError> {
        let received = self.take().unwrap_or_else(|| self.try_recv_past_arms());
        if received.is_ok() {
            self.notify_future();
        }
        received
    }

    /// Takes the oldest message. None if a select waits first in the queue of senders.
    #[inline(always)]
    fn take(&self) -> Option<Result<T, TryRecvError>> {
        let take = self.enter().take();
        self.settle_take(take)
    }

    #[inline(always)]
    fn settle_take(&self, take: Take<T>) -> Option<Result<T, TryRecvError>> {
        Some(match take {
            Take::Message(message, Taken { freed, spent }) => {
                self.settle(freed);
                drop(spent);
                Ok(message)
            }
            Take::Empty => {
                // Relaxed: a hint. The next look corrects a late one.
                self.vacant.store(true, Ordering::Relaxed);
                Err(TryRecvError::Empty)
            }
            Take::Disconnected => {
                // Relaxed: a hint. At the end a look never leads to a sleep.
                self.vacant.store(false, Ordering::Relaxed);
                Err(TryRecvError::Disconnected)
            }
            Take::Arm => return None,
        })
    }

    /// Waits for a message.
    #[inline(always)]
    pub(super) fn recv_slow(&self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        if self.back_off_until(deadline, State::may_receive) {
            return self.recv_in_vain(Waking::Notified, deadline);
        }
        match self.recv_asleep(deadline) {
            Ok(message) => Ok(message),
            Err(why) => self.recv_in_vain(why, deadline),
        }
    }

    /// Sleeps once. Returns the message, or why the sleep ended without one.
    #[inline(always)]
    fn recv_asleep(&self, deadline: Option<Instant>) -> Result<T, Waking> {
        let until = UntilReceived::new(self);
        let why = wait::sleep(&until, deadline);
        until.received().ok_or(why)
    }

    /// Waits on after a sleep that brought no message.
    #[cold]
    fn recv_in_vain(&self, mut why: Waking, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        loop {
            match why {
                Waking::Notified => {}
                Waking::TimedOut => return Err(RecvTimeoutError::Timeout),
                Waking::Cancelled => wait::unwind_cancelled(),
            }
            match self.try_recv() {
                Ok(message) => {
                    // Relaxed: a hint, which was wrong.
                    self.vacant.store(false, Ordering::Relaxed);
                    return Ok(message);
                }
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {}
            }
            // Selects may give up on this receiver again and again, without a sleep that is a cancellation point.
            wait::cancellation_point();
            if deadline.is_some_and(is_late) {
                return Err(RecvTimeoutError::Timeout);
            }
            match self.recv_asleep(deadline) {
                Ok(message) => return Ok(message),
                Err(again) => why = again,
            }
        }
    }

    /// Wakes a select that waits to send, and waits for its message. None if it gave up, or if none waits.
    #[cold]
    fn recv_from_arm(&self) -> Option<T> {
        let until = UntilPaired { channel: self, place: Receiving::new(), owed: Cell::new(None) };
        // Shielded: the select writes to this stack.
        let _notified = wait::sleep_shielded(&until, None);
        if let Some(sender) = until.owed.take() {
            sender.wake();
        }
        until.place.message.take()
    }

    /// Selects a send arm, if it need not wait.
    pub(super) fn reserve(&self) -> Reserve<T> {
        self.state.lock().reserve()
    }

    /// Sends into a slot that was reserved.
    pub(super) fn fulfil(&self, message: T) -> Result<(), SendError<T>> {
        let (put, freed) = self.state.lock().fulfil(message);
        // First: the wake of a receiver may run a waker, which may drop a future that waits for the wake owed here.
        self.settle(freed);
        let sent = self.settle_put(put);
        sent.map_err(|error| SendError(error.into_inner()))
    }

    /// Gives up a slot that was reserved.
    pub(super) fn release(&self) {
        let freed = self.state.lock().release();
        self.settle(freed);
    }

    /// Wakes after room came free.
    #[inline(always)]
    fn settle(&self, freed: Option<Freed>) {
        if let Some(freed) = freed {
            self.tell_freed(freed);
        }
    }

    #[inline(never)]
    fn tell_freed(&self, freed: Freed) {
        if let Some(wake) = freed.wake {
            wake.wake();
        }
        if freed.sending_watched {
            self.tell_send_watchers();
        }
        if freed.receiving_watched {
            self.notify_future();
        }
    }

    /// Notifies one future and all watchers of a message.
    #[cold]
    fn tell_receivers(&self) {
        self.notify_future();
        self.tell_receive_watchers();
    }

    /// Notifies the first waiting future if there is a message for it.
    #[cold]
    fn notify_future(&self) {
        let next = self.state.lock().next_future();
        if let Some(wake) = next {
            wake.wake();
        }
    }

    #[cold]
    pub(super) fn tell_receive_watchers(&self) {
        self.tell(State::receive_watchers);
    }

    #[cold]
    pub(super) fn tell_send_watchers(&self) {
        self.tell(State::send_watchers);
    }

    /// Notifies the present watchers once each. A watcher that comes back meanwhile belongs to the next round.
    fn tell(&self, watchers: fn(&mut State<T>) -> &mut Crowd) {
        let ended = watchers(&mut self.state.lock()).end_round();
        wait::wake_all(&self.state, |state| watchers(state).next(ended));
    }

    /// Closes the channel after the last sender. Receivers take what is left.
    pub(super) fn close(&self) {
        self.state.lock().disconnect();
        self.tell_end();
    }

    /// Closes the channel after the last receiver. Drops the messages that were not received.
    pub(super) fn close_and_clear(&self) {
        let unreceived = {
            let mut state = self.state.lock();
            state.disconnect();
            state.take_unreceived()
        };
        self.tell_end();
        drop(unreceived);
    }

    #[cold]
    fn tell_end(&self) {
        wait::wake_all(&self.state, State::next_to_tell);
    }
}

/// The sleep of a sender, until its message is taken.
pub(super) struct UntilSent<'a, T> {
    channel: &'a Shared<T>,
    node: Node<Sending<T>>,
}

// SAFETY: the node is only touched under the channel's lock, and by the owner of this when it is in no list; with `T` the
// message in it may go to another thread.
unsafe impl<T: Send> Send for UntilSent<'_, T> {}

impl<'a, T> UntilSent<'a, T> {
    pub(super) fn new(channel: &'a Shared<T>, message: T) -> Self {
        UntilSent { channel, node: Node::with(Sending::message(message)) }
    }

    /// Returns the message if the wait was in vain.
    pub(super) fn unsent(&self) -> Option<T> {
        self.node.data().message.take()
    }
}

impl<T> WaitStrategy for UntilSent<'_, T> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let watched = {
            let mut state = self.channel.state.lock();
            if state.may_send() {
                return Asleep::Rouse;
            }
            // SAFETY: the node stays until the sleep is over, is in no list, and is only touched under this lock; its wake
            // is taken out of it under the lock, and `before_awake` answers `Served` from then on.
            unsafe { state.await_room(&self.node, me.raw()) }
        };
        if watched {
            self.channel.tell_receive_watchers();
        }
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: the node is in this list or in none.
        withdrawal(why, || unsafe { self.channel.state.lock().withdraw_sender(&self.node) })
    }

    fn may_spin(&self) -> bool {
        true
    }
}

/// The sleep of a receiver, until it is given a message.
struct UntilReceived<'a, T> {
    channel: &'a Shared<T>,
    node: Node<Receiving<T>>,
}

// SAFETY: as for `UntilSent`.
unsafe impl<T: Send> Send for UntilReceived<'_, T> {}

impl<'a, T> UntilReceived<'a, T> {
    fn new(channel: &'a Shared<T>) -> Self {
        UntilReceived { channel, node: Node::with(Receiving::new()) }
    }

    /// Returns the message, if one was given.
    fn received(&self) -> Option<T> {
        self.node.data().message.take()
    }
}

impl<T> WaitStrategy for UntilReceived<'_, T> {
    #[inline(never)]
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let watched = {
            let mut state = self.channel.state.lock();
            if state.may_receive() {
                return Asleep::Rouse;
            }
            // SAFETY: as in `UntilSent`.
            unsafe { state.await_message(&self.node, me.raw()) }
        };
        if watched {
            self.channel.tell_send_watchers();
        }
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: the node is in this list or in none.
        withdrawal(why, || unsafe { self.channel.state.lock().withdraw_receiver(&self.node) })
    }

    fn may_spin(&self) -> bool {
        true
    }
}

fn withdrawal(why: Waking, withdraw: impl FnOnce() -> bool) -> Withdrawal {
    match why == Waking::Notified || withdraw() {
        true => Withdrawal::Withdrawn,
        false => Withdrawal::Served,
    }
}

/// The wait of a future that receives: it is notified, and tries again.
impl<T> Queue for Shared<T> {
    type Asks = ();

    unsafe fn enlist(&self, node: &Node, wake: RawWake) -> bool {
        let freed = {
            let mut state = self.state.lock();
            if state.holds_message_past_arms() {
                return false;
            }
            // SAFETY: the caller's contract; the node is touched under this lock only.
            unsafe { state.enlist_future(node, wake) }
        };
        // Arms and watchers belong to tasks and threads: their wakes run no code of a future.
        self.settle(freed);
        true
    }

    unsafe fn withdraw(&self, node: &Node) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.state.lock().withdraw_future(node) }
    }

    fn pass_on(&self, (): &()) {
        self.notify_future();
    }

    fn departed(&self) {}
}

/// The sleep of a receiver while the select that it woke makes the message. It is in no list: the select has its wake.
struct UntilPaired<'a, T> {
    channel: &'a Shared<T>,
    place: Receiving<T>,
    /// The wake of a sender that has given its message. Not to be used in the hook: a waker may do anything, also wait.
    owed: Cell<Option<RawWake>>,
}

impl<T> WaitStrategy for UntilPaired<'_, T> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: used once, by the partner, and the sleep is shielded and has no deadline: it lasts until then. Else it is
        // dropped.
        let pairing = self.channel.state.lock().pair(&self.place, unsafe { me.raw() });
        match pairing {
            // A select belongs to a task or a thread: its wake runs no waker.
            Pairing::Lent(sender) => {
                sender.wake();
                Asleep::Stay
            }
            Pairing::Given(sender) => {
                self.owed.set(Some(sender));
                Asleep::Rouse
            }
            Pairing::Alone => Asleep::Rouse,
        }
    }

    fn before_awake(&self, _why: Waking) -> Withdrawal {
        Withdrawal::Withdrawn
    }
}
