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

#![forbid(unsafe_code)]

#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::Cell;
use std::hint::spin_loop;
use std::time::Instant;

use fibra_runtime::clock;

use super::arm::Purpose;
use super::error::{RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError};
use super::outcome::{Missing, Refused, Reserve, Sent};
use super::places::{FUTURES, Grant, LANES, Place, RECEIVERS, SENDERS, WATCHERS, Waiting};
use super::queue::{Block, Popped, Queue};
use super::state::State;
use super::timers::is_late;
use crate::primitive::{AtomicBool, Ordering};
use crate::wait::{
    self, Admit, ArmRules, Left, LockedQueue, Looks, Outcome, QueueArm, Until, WaitDescription, WaitQueue,
};

static SEND: WaitDescription = WaitDescription::new("channel send");
static RECEIVE: WaitDescription = WaitDescription::new("channel receive");

/// Least capacity for a back-off. With less room the peer soon waits for the side that backs off.
const MANY: usize = 32;

/// Pauses after a failed attempt at the contended lock.
const PAUSES: u32 = 32;

/// The state of a channel, and the hints beside its lock.
pub(super) struct Shared<T> {
    queue: ChannelQueue<T>,
    /// True if the last look found no message, and none is known to be queued since. A hint: a receiver then goes to sleep
    /// without a look, since the sleep looks.
    vacant: AtomicBool,
    /// True if the lock was contended while messages lay here, since the last wait. A hint: a side then backs off before it
    /// waits.
    contended: AtomicBool,
    pub(super) capacity: Option<usize>,
}

impl<T> Shared<T> {
    pub(super) fn new(capacity: Option<usize>) -> Self {
        Shared {
            queue: WaitQueue::new(State::new(capacity)),
            vacant: AtomicBool::new(true),
            contended: AtomicBool::new(false),
            capacity,
        }
    }

    /// Returns true if this is no rendezvous.
    pub(super) fn has_slots(&self) -> bool {
        self.capacity != Some(0)
    }

    /// Looks at the state under the lock.
    pub(super) fn look<R>(&self, look: impl FnOnce(&State<T>, &Waiting<'_, T>) -> R) -> R {
        self.queue.with(|state, waiting| look(state, waiting))
    }

    /// Locks the queue for one message. Backs off if the lock is contended.
    #[inline(always)]
    fn enter(&self) -> LockedChannel<'_, T> {
        self.queue.lock_or_first(|| self.back_off())
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
    fn back_off_until(
        &self,
        deadline: Option<Instant>,
        done: fn(&State<T>, &Waiting<'_, T>) -> bool,
    ) -> bool {
        // Relaxed: a hint.
        self.contended.load(Ordering::Relaxed) && self.back_off_slow(deadline, done)
    }

    #[cold]
    fn back_off_slow(&self, deadline: Option<Instant>, done: fn(&State<T>, &Waiting<'_, T>) -> bool) -> bool {
        // Relaxed: a hint. The next wait needs a new one.
        self.contended.store(false, Ordering::Relaxed);
        !clock::has_passed(deadline) && wait::back_off_until(Looks::Seldom, || self.look(done))
    }

    /// Sends without waiting.
    #[inline(never)]
    pub(super) fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let mut queue = self.enter();
        if queue.has_no_entries() && queue.state().is_open() {
            let pushed = queue.state().push(message);
            drop(queue);
            return self.settle_put(pushed);
        }
        self.try_send_beside_waiters(queue, message)
    }

    #[inline(never)]
    fn try_send_beside_waiters(
        &self,
        queue: LockedChannel<'_, T>,
        message: T,
    ) -> Result<(), TrySendError<T>> {
        self.settle_put(queue.with(|state, waiting| state.put(message, waiting)))
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

    #[inline(always)]
    fn settle_put(&self, put: Result<Sent, Refused<T>>) -> Result<(), TrySendError<T>> {
        match put {
            Ok(Sent::Queued) => {
                // Relaxed: a hint.
                self.vacant.store(false, Ordering::Relaxed);
                Ok(())
            }
            Ok(Sent::Handed) => Ok(()),
            Err(Refused::Full(message)) => Err(TrySendError::Full(message)),
            Err(Refused::Disconnected(message)) => Err(TrySendError::Disconnected(message)),
            Err(Refused::Cramped(message)) => self.enlarge_and_send(message),
        }
    }

    /// Sends without waiting, in place of the oldest message if there is no room. Returns that message.
    pub(super) fn force_send(&self, message: T) -> Result<Option<T>, TrySendError<T>> {
        let mut replaced = None;
        let put = self.queue.with(|state, waiting| state.force(message, waiting, &mut replaced));
        self.settle_put(put).map(|()| replaced)
    }

    #[cold]
    fn enlarge_and_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let block = Block::new();
        let superfluous = self.queue.with(|state, _| state.queue.supply(block));
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
            let watched = Cell::new(false);
            let (outcome, place) = self.queue.wait(
                SENDERS,
                Place::Message(message),
                Until::unwind(deadline).spinning().described(&SEND),
                |state, _, waiting| {
                    watched.set(!waiting.is_empty(WATCHERS));
                    admit_sender(state, waiting)
                },
                || self.tell_watchers_if(&watched),
                |_, _, _, _| (),
            );
            match (place.message(), outcome) {
                (None, _) => return Ok(()),
                (Some(kept), Outcome::TimedOut) => return Err(SendTimeoutError::Timeout(kept)),
                (Some(kept), _) => message = kept,
            }
            may_send = true;
        }
    }

    /// Waits at a rendezvous, as a future, until the message is received. Returns it if the sender is to try again.
    pub(super) async fn send_once(&self, message: T) -> Option<T> {
        let waits = self.queue.wait_async_then(
            SENDERS,
            Place::Message(message),
            |state, _, waiting| admit_sender(state, waiting),
            || self.tell_watchers(),
            |_, _, _, _| (),
        );
        waits.await.1.message()
    }

    /// Tells watchers, if there are any, of a waiter that has arrived.
    #[inline]
    fn tell_watchers_if(&self, watched: &Cell<bool>) {
        if watched.get() {
            self.tell_watchers();
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
        match self.take_or(State::take_from_sender) {
            Err(Missing::Arm) => self.try_recv_from_arm(let_down),
            taken => self.note(taken),
        }
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
        let taken = self.take_or(State::take_past_arms);
        self.note(taken)
    }

    /// Receives for a future, without waiting. Notifies the next future if messages are left.
    pub(super) fn try_recv_async(&self) -> Result<T, TryRecvError> {
        let received = self.try_recv_past_arms();
        if received.is_ok() {
            self.notify_future();
        }
        received
    }

    /// Takes the oldest message from the queue, or `else_take` one from a sender.
    #[inline(always)]
    fn take_or(
        &self,
        else_take: impl FnOnce(&mut State<T>, &mut Waiting<'_, T>) -> Result<T, Missing>,
    ) -> Result<T, Missing> {
        let mut queue = self.enter();
        let Some(Popped { message, spent }) = queue.state().pop() else {
            return queue.with(else_take);
        };
        match queue.has_no_entries() {
            true => drop(queue),
            false => pass_room_on(queue),
        }
        drop(spent);
        Ok(message)
    }

    /// Notes in the hint whether there may be messages.
    #[inline(always)]
    fn note(&self, taken: Result<T, Missing>) -> Result<T, TryRecvError> {
        taken.map_err(|missing| {
            let is_over = matches!(missing, Missing::Disconnected);
            // Relaxed: a hint. The next look corrects a late one; at the end a look never leads to a sleep.
            self.vacant.store(!is_over, Ordering::Relaxed);
            if is_over { TryRecvError::Disconnected } else { TryRecvError::Empty }
        })
    }

    /// Waits for a message.
    #[inline(always)]
    pub(super) fn recv_slow(&self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        if self.back_off_until(deadline, State::may_receive) {
            return self.recv_in_vain(Outcome::Served, deadline);
        }
        match self.recv_asleep(deadline) {
            Ok(message) => Ok(message),
            Err(why) => self.recv_in_vain(why, deadline),
        }
    }

    /// Waits once. Returns the message, or how the wait ended without one.
    #[inline(always)]
    fn recv_asleep(&self, deadline: Option<Instant>) -> Result<T, Outcome<()>> {
        let watched = Cell::new(false);
        let (outcome, place) = self.queue.wait(
            RECEIVERS,
            Place::Empty,
            Until::unwind(deadline).spinning().described(&RECEIVE),
            |state, _, waiting| {
                watched.set(!waiting.is_empty(WATCHERS));
                if state.may_receive(waiting) { Admit::Done(()) } else { Admit::Back }
            },
            || self.tell_watchers_if(&watched),
            |_, _, _, _| (),
        );
        place.message().ok_or(outcome)
    }

    /// Waits on after a sleep that brought no message.
    #[cold]
    fn recv_in_vain(&self, mut why: Outcome<()>, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        loop {
            if why == Outcome::TimedOut {
                return Err(RecvTimeoutError::Timeout);
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
        let (_, place) = self.queue.wait(
            RECEIVERS,
            Place::Empty,
            // The select writes to this stack.
            Until::shielded(None).described(&RECEIVE),
            |state, _, waiting| if state.has_arm(waiting) { Admit::Back } else { Admit::Done(()) },
            // A select belongs to a task or a thread: its wake runs no waker.
            || drop(self.queue.with(State::pair)),
            |_, _, _, _| (),
        );
        place.message()
    }

    /// Waits, as a future, until there may be a message.
    pub(super) async fn await_message(&self) {
        let waits = self.queue.wait_async_then(
            FUTURES,
            Place::Empty,
            |state, _, waiting| match state.holds_message_past_arms(waiting) {
                true => Admit::Done(()),
                false => Admit::Back,
            },
            // Arms and watchers belong to tasks and threads: their wakes run no code of a future.
            || self.open_to_arms(),
            |state, _, waiting, left| {
                if left == Left::Served {
                    state.notify_future(waiting);
                }
            },
        );
        waits.await;
    }

    fn open_to_arms(&self) {
        if !self.has_slots() {
            self.queue.with(State::open_to_arms);
        }
    }

    /// Selects a send arm, if it need not wait.
    pub(super) fn reserve(&self) -> Reserve<T> {
        self.queue.with(State::reserve)
    }

    /// Waits for a right to send, where a slot can be reserved.
    pub(super) fn reserve_slow(&self, deadline: Option<Instant>) -> Result<Grant<T>, SendTimeoutError<()>> {
        loop {
            let (outcome, place) = self.queue.wait(
                SENDERS,
                Place::Arm,
                Until::unwind(deadline).spinning().described(&SEND),
                |state, _, waiting| admit_reservation(state, waiting),
                || (),
                |_, _, _, _| (),
            );
            match (place, outcome) {
                (Place::Granted(grant), _) => return Ok(grant),
                (_, Outcome::TimedOut) => return Err(SendTimeoutError::Timeout(())),
                _ => {}
            }
            match self.reserve() {
                Reserve::Granted(grant) => return Ok(grant),
                Reserve::Disconnected => return Err(SendTimeoutError::Disconnected(())),
                Reserve::Full => {}
            }
        }
    }

    /// Waits for a right to send, as a future, where a slot can be reserved. None if no receiver is left.
    pub(super) async fn reserve_async(&self) -> Option<Grant<T>> {
        loop {
            match self.reserve() {
                Reserve::Granted(grant) => return Some(grant),
                Reserve::Disconnected => return None,
                Reserve::Full => {}
            }
            let waits = self.queue.wait_async(
                SENDERS,
                Place::Arm,
                |state, _, waiting| admit_reservation(state, waiting),
                |state, place, waiting, _| {
                    if matches!(place, Place::Granted(Grant::Room)) {
                        state.release(waiting);
                    }
                },
            );
            if let (_, Place::Granted(grant)) = waits.await {
                return Some(grant);
            }
        }
    }

    /// Sends into a slot that was reserved.
    pub(super) fn fulfil(&self, message: T) -> Result<(), SendError<T>> {
        let put = self.queue.with(|state, waiting| state.fulfil(message, waiting));
        self.settle_put(put).map_err(|error| SendError(error.into_inner()))
    }

    /// Gives up a slot that was reserved.
    pub(super) fn release(&self) {
        self.queue.with(State::release);
    }

    /// Notifies the first waiting future if there is a message for it.
    #[cold]
    fn notify_future(&self) {
        self.queue.with(|state, waiting| state.notify_future(waiting));
    }

    /// Notifies the present watchers. They are tasks and threads: no code of a future runs.
    #[cold]
    pub(super) fn tell_watchers(&self) {
        tell_watchers_of(&self.queue);
    }

    /// Takes all messages out of the channel.
    pub(super) fn take_all(&self) -> Queue<T> {
        let fresh = State::queue(self.capacity);
        self.queue.with(|state, waiting| state.take_all(fresh, waiting))
    }

    /// Closes the channel after the last sender. Receivers take what is left.
    pub(super) fn close(&self) {
        self.queue.with(State::disconnect);
    }

    /// Closes the channel after the last receiver. Drops the messages that were not received.
    pub(super) fn close_and_clear(&self) {
        drop(self.queue.with(|state, waiting| {
            state.disconnect(waiting);
            state.take_unreceived()
        }));
    }

    /// Makes the place of a receive arm of a select.
    #[inline]
    pub(super) fn receive_arm(&self) -> ChannelArm<'_, T> {
        QueueArm::new(&self.queue, RECEIVERS, Place::Empty, &Self::RECEIVE).described(&RECEIVE)
    }

    /// Makes the place of a send arm of a select.
    #[inline]
    pub(super) fn send_arm(&self) -> ChannelArm<'_, T> {
        QueueArm::new(&self.queue, SENDERS, Place::Arm, &Self::SEND).described(&SEND)
    }

    /// Lets a select receive by this arm, or watch for something to receive.
    pub(super) fn aim_receive_arm<'a>(&'a self, arm: &ChannelArm<'a, T>, purpose: Purpose) {
        match (purpose, self.has_slots()) {
            (Purpose::Watch, _) => arm.move_to(WATCHERS, &Self::RECEIVE),
            (Purpose::Act, true) => arm.move_to(RECEIVERS, &Self::RECEIVE),
            (Purpose::Act, false) => arm.move_to(RECEIVERS, &Self::RECEIVE_AT_RENDEZVOUS),
        }
    }

    /// Lets a select send by this arm, or watch for room.
    pub(super) fn aim_send_arm<'a>(&'a self, arm: &ChannelArm<'a, T>, purpose: Purpose) {
        match (purpose, self.has_slots()) {
            (Purpose::Watch, _) => arm.move_to(WATCHERS, &Self::SEND),
            (Purpose::Act, true) => arm.move_to(SENDERS, &Self::SEND),
            (Purpose::Act, false) => arm.move_to(SENDERS, &Self::SEND_AT_RENDEZVOUS),
        }
    }

    const RECEIVE: Rules<T> = ArmRules::new(|state, _, waiting| state.may_receive(waiting));
    const SEND: Rules<T> = ArmRules::new(|state, _, waiting| state.may_reserve(waiting));
    // Elsewhere than at a rendezvous an arm waits for what is not there, and gives watchers nothing to do.
    const RECEIVE_AT_RENDEZVOUS: Rules<T> = ArmRules { published: tell_watchers_of, ..Self::RECEIVE };
    const SEND_AT_RENDEZVOUS: Rules<T> = ArmRules { published: tell_watchers_of, ..Self::SEND };
}

type LockedChannel<'a, T> = LockedQueue<'a, State<T>, Place<T>, LANES>;

type ChannelQueue<T> = WaitQueue<State<T>, Place<T>, LANES>;

/// A place in a channel for an arm of a select.
pub(super) type ChannelArm<'a, T> = QueueArm<'a, State<T>, Place<T>, LANES>;

type Rules<T> = ArmRules<State<T>, Place<T>, LANES>;

/// Gives a slot that came free to the waiters.
#[inline(never)]
fn pass_room_on<T>(queue: LockedChannel<'_, T>) {
    queue.with(State::pass_room_on);
}

/// Notifies the present watchers of a channel.
fn tell_watchers_of<T>(queue: &ChannelQueue<T>) {
    queue.with(|_, waiting| waiting.serve_all(WATCHERS));
}

/// Has a sender wait, unless it may send.
fn admit_sender<T>(state: &State<T>, waiting: &Waiting<'_, T>) -> Admit<()> {
    if state.may_send(waiting) { Admit::Done(()) } else { Admit::Back }
}

/// Has a sender wait that has no message yet, unless it may send.
fn admit_reservation<T>(state: &State<T>, waiting: &Waiting<'_, T>) -> Admit<()> {
    if state.may_reserve(waiting) { Admit::Done(()) } else { Admit::Back }
}
