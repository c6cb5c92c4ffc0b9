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

pub(super) mod arms;
#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::Cell;
use std::hint::spin_loop;
use std::mem;
use std::time::Instant;

use fibra_runtime::clock;

use super::error::{RecvTimeoutError, TryRecvError, TrySendError};
use super::outcome::{Missing, Refused};
use super::places::{FUTURES, LANES, Place, RECEIVERS, SENDERS, WATCHERS, Waiting};
use super::queue::{Block, Popped, Queue};
use super::state::State;
use super::timers::is_late;
use crate::primitive::{AtomicBool, Ordering};
use crate::wait::{self, Admit, Left, LockedQueue, Looks, Outcome, Until, WaitDescription, WaitQueue};

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
        self.send_or(message, |message| Err(TrySendError::Full(message)), TrySendError::Disconnected)
    }

    /// Sends a message, waiting if there is no room. `late` makes the error after the deadline.
    #[inline(never)]
    pub(super) fn send<E>(
        &self,
        message: T,
        deadline: impl FnOnce() -> Option<Instant>,
        late: impl FnOnce(T) -> E,
        disconnected: impl FnOnce(T) -> E + Copy,
    ) -> Result<(), E> {
        let wait = |message| self.send_slow(message, deadline(), late, disconnected);
        self.send_or(message, wait, disconnected)
    }

    /// Sends without waiting. Otherwise `full` says what comes of the message, or `disconnected` makes it an error.
    ///
    /// So a large message goes straight into the result.
    #[inline(always)]
    fn send_or<E>(
        &self,
        message: T,
        full: impl FnOnce(T) -> Result<(), E>,
        disconnected: impl FnOnce(T) -> E,
    ) -> Result<(), E> {
        let mut queue = self.enter();
        if queue.has_no_entries()
            && queue.state().is_open()
            && let Ok(slot) = queue.state().take_slot()
        {
            slot.fill(message);
            drop(queue);
            self.note_message();
            return Ok(());
        }
        self.put::<false, _>(queue, message, || Ok(()), full, |message| Err(disconnected(message)))
    }

    /// Hands a message to the first waiting receiver, or puts it into a slot, which is open or `RESERVED` for it. Then returns
    /// what `sent` makes, or else `full` or `disconnected` of the message.
    #[inline(never)]
    fn put<const RESERVED: bool, R>(
        &self,
        mut queue: LockedChannel<'_, T>,
        message: T,
        sent: impl FnOnce() -> R,
        full: impl FnOnce(T) -> R,
        disconnected: impl FnOnce(T) -> R,
    ) -> R {
        if RESERVED {
            queue.state().open_reserved();
        }
        let served = match queue.state().is_over() {
            true => Err(queue),
            false => queue.serve_front(RECEIVERS),
        };
        let mut queue = match served {
            Ok(queue) => queue,
            Err(queue) => return self.put_into_slot::<RESERVED, _>(queue, message, sent, full, disconnected),
        };
        if let Some(place) = queue.first_served() {
            place.give(message);
        }
        if RESERVED {
            // The message did not need the slot.
            let (state, mut waiting) = queue.parts();
            state.pass_room_on(&mut waiting);
        }
        sent()
    }

    /// Puts a message into a slot.
    #[inline(never)]
    fn put_into_slot<const RESERVED: bool, R>(
        &self,
        queue: LockedChannel<'_, T>,
        message: T,
        sent: impl FnOnce() -> R,
        full: impl FnOnce(T) -> R,
        disconnected: impl FnOnce(T) -> R,
    ) -> R {
        let mut queue = queue.serving();
        let (state, mut waiting) = queue.parts();
        let slot = match RESERVED {
            true => state.take_reserved_and_tell(&mut waiting),
            false => state.take_slot_and_tell(&mut waiting),
        };
        let refused = match slot {
            Ok(slot) => {
                slot.fill(message);
                drop(queue);
                self.note_message();
                return sent();
            }
            Err(refused) => refused,
        };
        drop(queue);
        match refused {
            Refused::Full => full(message),
            Refused::Disconnected => disconnected(message),
            Refused::Cramped => {
                self.enlarge();
                self.put::<false, _>(self.enter(), message, sent, full, disconnected)
            }
        }
    }

    /// Notes in the hint that a message was queued.
    #[inline(always)]
    fn note_message(&self) {
        // Relaxed: a hint.
        self.vacant.store(false, Ordering::Relaxed);
    }

    /// Sends without waiting, in place of the oldest message if there is no room. Returns that message.
    pub(super) fn force_send(&self, mut message: T) -> Result<Option<T>, TrySendError<T>> {
        wait::charge();
        let mut queue = self.enter();
        if queue.state().exchange_oldest(&mut message) {
            // No receiver waits where a message lies.
            queue.with(|_, waiting| State::tell(waiting));
            self.note_message();
            return Ok(Some(message));
        }
        self.put::<false, _>(
            queue,
            message,
            || Ok(None),
            |message| Err(TrySendError::Full(message)),
            |message| Err(TrySendError::Disconnected(message)),
        )
    }

    #[cold]
    fn enlarge(&self) {
        let block = Block::new();
        let superfluous = self.queue.with(|state, _| state.queue.supply(block));
        drop(superfluous);
    }

    /// Waits until the message is queued or received.
    #[inline(never)]
    fn send_slow<E>(
        &self,
        message: T,
        deadline: Option<Instant>,
        late: impl FnOnce(T) -> E,
        disconnected: impl FnOnce(T) -> E,
    ) -> Result<(), E> {
        // The wait tries again first, whether there is room now or not.
        self.back_off_until(deadline, State::may_send);
        let watched = Cell::new(false);
        self.queue.wait_then(
            SENDERS,
            Place::of(message),
            Until::unwind(deadline).spinning().described(&SEND),
            |state, place, waiting| {
                watched.set(!waiting.is_empty(WATCHERS));
                send_from(place, state, waiting)
            },
            || self.tell_watchers_if(&watched),
            |_, _, _, _| (),
            |outcome, place| match place.take() {
                Some(message) if outcome == Outcome::TimedOut => Err(late(message)),
                // A sender that is served and keeps its message was told of the end.
                Some(message) => Err(disconnected(message)),
                None => {
                    if outcome == Outcome::Done(true) {
                        self.note_message();
                    }
                    Ok(())
                }
            },
        )
    }

    /// Waits at a rendezvous, as a future, until the message is received. Returns it if the sender is to try again.
    #[inline(always)]
    pub(super) fn send_once(&self, message: T) -> impl Future<Output = Option<T>> {
        self.queue.wait_async_then(
            SENDERS,
            Place::of(message),
            |state, _, waiting| Admit::if_ready(state.may_send(waiting)),
            || tell_watchers(&self.queue),
            |_, _, _, _| (),
            |_, place| place.take(),
        )
    }

    /// Tells watchers, if there are any, of a waiter that has arrived.
    #[inline]
    fn tell_watchers_if(&self, watched: &Cell<bool>) {
        if watched.get() {
            tell_watchers(&self.queue);
        }
    }

    /// Receives without waiting, except for one select that makes its message, if the caller may be suspended.
    ///
    /// Sets `let_down` if that select gave up.
    #[inline(never)]
    pub(super) fn try_recv(&self, let_down: Option<&Cell<bool>>) -> Result<T, TryRecvError> {
        self.try_recv_or(let_down, Err)
    }

    /// Variant of [`try_recv`](Shared::try_recv) where `miss` says what comes if there is no message.
    #[inline(always)]
    fn try_recv_or<E>(
        &self,
        let_down: Option<&Cell<bool>>,
        miss: impl FnOnce(TryRecvError) -> Result<T, E>,
    ) -> Result<T, E> {
        self.take_or(State::serve_sender, |missing| match missing {
            Missing::Arm => self.try_recv_from_arm(let_down, miss),
            missing => miss(self.note(missing)),
        })
    }

    /// Receives where a select waits to send. It is a partner at a rendezvous only; elsewhere it waits for room.
    ///
    /// Wakes the select, and waits for its message.
    #[cold]
    #[inline(never)]
    fn try_recv_from_arm<E>(
        &self,
        let_down: Option<&Cell<bool>>,
        miss: impl FnOnce(TryRecvError) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.has_slots() || !wait::may_suspend() {
            return self.try_recv_past_arms(miss);
        }
        self.queue.wait_then(
            RECEIVERS,
            Place::EMPTY,
            // The select writes to this stack.
            Until::shielded(None).described(&RECEIVE),
            |state, _, waiting| Admit::if_ready(!state.has_arm(waiting)),
            // A select belongs to a task or a thread: its wake runs no waker.
            || drop(self.queue.with(State::pair)),
            |_, _, _, _| (),
            |_, place| match place.take() {
                Some(message) => Ok(message),
                None => {
                    let_down.into_iter().for_each(|let_down| let_down.set(true));
                    self.try_recv_past_arms(miss)
                }
            },
        )
    }

    /// Receives without waiting, and passes over selects that wait to send.
    #[cold]
    #[inline(never)]
    fn try_recv_past_arms<E>(&self, miss: impl FnOnce(TryRecvError) -> Result<T, E>) -> Result<T, E> {
        self.take_or(State::serve_sender_past_arms, |missing| miss(self.note(missing)))
    }

    /// Receives for a future, without waiting. Notifies the next future if messages are left.
    pub(super) fn try_recv_async(&self) -> Result<T, TryRecvError> {
        let received = self.try_recv_past_arms(Err);
        if received.is_ok() {
            self.queue.with(State::notify_future);
        }
        received
    }

    /// Takes the oldest message from the queue, or of the sender that `serve_sender` serves. `miss` says what comes if there is
    /// none.
    #[inline(always)]
    fn take_or<E>(
        &self,
        serve_sender: impl for<'a> FnOnce(&State<T>, &'a mut Waiting<'_, T>) -> Result<&'a mut Place<T>, Missing>,
        miss: impl FnOnce(Missing) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut queue = self.enter();
        if let Some(Popped { message, spent }) = queue.state().pop() {
            let _freed = Freed { queue: Some(queue), _spent: spent };
            return Ok(message);
        }
        let mut queue = queue.serving();
        let (state, mut waiting) = queue.parts();
        let missing = match serve_sender(state, &mut waiting) {
            Ok(place) => match place.take() {
                Some(message) => return Ok(message),
                None => Missing::Empty,
            },
            Err(missing) => missing,
        };
        drop(queue);
        miss(missing)
    }

    /// Notes in the hint whether there may be messages.
    #[inline(always)]
    fn note(&self, missing: Missing) -> TryRecvError {
        let is_over = matches!(missing, Missing::Disconnected);
        // Relaxed: a hint. The next look corrects a late one; at the end a look never leads to a sleep.
        self.vacant.store(!is_over, Ordering::Relaxed);
        if is_over { TryRecvError::Disconnected } else { TryRecvError::Empty }
    }

    /// Receives a message, waiting if there is none. `fail` makes the error.
    ///
    /// Does not look where there is likely no message. So the sleep lies in the frame of the caller, and takes no call.
    #[inline(always)]
    pub(super) fn recv<E>(
        &self,
        deadline: impl FnOnce() -> Option<Instant>,
        fail: impl Fn(RecvTimeoutError) -> E,
    ) -> Result<T, E> {
        // Relaxed: a hint.
        match self.vacant.load(Ordering::Relaxed) && wait::may_suspend() {
            true => self.recv_slow(deadline(), fail),
            false => self.recv_present(deadline, fail),
        }
    }

    /// Receives a message where there likely is one.
    #[inline(never)]
    fn recv_present<E>(
        &self,
        deadline: impl FnOnce() -> Option<Instant>,
        fail: impl Fn(RecvTimeoutError) -> E,
    ) -> Result<T, E> {
        self.try_recv_or(None, |missing| match missing {
            TryRecvError::Disconnected => Err(fail(RecvTimeoutError::Disconnected)),
            TryRecvError::Empty => self.recv_on(deadline(), fail, true),
        })
    }

    /// Waits for a message. `fail` makes the error.
    #[inline(always)]
    fn recv_slow<E>(&self, deadline: Option<Instant>, fail: impl Fn(RecvTimeoutError) -> E) -> Result<T, E> {
        if self.back_off_until(deadline, State::may_receive) {
            return self.recv_on(deadline, fail, false);
        }
        self.recv_asleep(deadline, |why| match why {
            Outcome::TimedOut => Err(fail(RecvTimeoutError::Timeout)),
            _ => self.recv_on(deadline, fail, false),
        })
    }

    /// Waits once. `in_vain` says what comes of a wait that ends without a message.
    #[inline(always)]
    fn recv_asleep<E>(
        &self,
        deadline: Option<Instant>,
        in_vain: impl FnOnce(Outcome<()>) -> Result<T, E>,
    ) -> Result<T, E> {
        let watched = Cell::new(false);
        self.queue.wait_then(
            RECEIVERS,
            Place::EMPTY,
            Until::unwind(deadline).spinning().described(&RECEIVE),
            |state, _, waiting| {
                watched.set(!waiting.is_empty(WATCHERS));
                Admit::if_ready(state.may_receive(waiting))
            },
            || self.tell_watchers_if(&watched),
            |_, _, _, _| (),
            |outcome, place| match place.take() {
                Some(message) => Ok(message),
                None => in_vain(outcome),
            },
        )
    }

    /// Goes on after a sleep that brought no message, or if the caller `has_looked`, after a look that found none.
    #[cold]
    #[inline(never)]
    fn recv_on<E>(
        &self,
        deadline: Option<Instant>,
        fail: impl Fn(RecvTimeoutError) -> E,
        mut has_looked: bool,
    ) -> Result<T, E> {
        loop {
            has_looked &= !self.back_off_until(deadline, State::may_receive);
            // Told beside the result: so a large message lies in the result alone.
            let again = Cell::new(false);
            let received = match has_looked {
                true => self.recv_asleep_again(deadline, &fail, &again),
                false => self.recv_again(deadline, &fail, &again),
            };
            if !again.get() {
                return received;
            }
            // An error that says nothing. Its drop would be code for a message, too.
            mem::forget(received);
            has_looked = false;
        }
    }

    /// Receives a message that there is, or waits once.
    #[inline(always)]
    fn recv_again<E>(
        &self,
        deadline: Option<Instant>,
        fail: &impl Fn(RecvTimeoutError) -> E,
        again: &Cell<bool>,
    ) -> Result<T, E> {
        // Relaxed: a hint, which was wrong. The look corrects it.
        self.vacant.store(false, Ordering::Relaxed);
        self.try_recv_or(None, |missing| {
            if missing == TryRecvError::Disconnected {
                return Err(fail(RecvTimeoutError::Disconnected));
            }
            // Selects may give up on this receiver again and again, without a sleep that is a cancellation point.
            wait::cancellation_point();
            match deadline.is_some_and(is_late) {
                true => Err(fail(RecvTimeoutError::Timeout)),
                false => self.recv_asleep_again(deadline, fail, again),
            }
        })
    }

    /// Waits once, on stack that no other path takes. Sets `again` if the wait ends without a message before its time.
    #[inline(never)]
    fn recv_asleep_again<E>(
        &self,
        deadline: Option<Instant>,
        fail: &impl Fn(RecvTimeoutError) -> E,
        again: &Cell<bool>,
    ) -> Result<T, E> {
        self.recv_asleep(deadline, |why| {
            again.set(why != Outcome::TimedOut);
            Err(fail(RecvTimeoutError::Timeout))
        })
    }

    /// Waits, as a future, until there may be a message.
    #[inline(always)]
    pub(super) fn await_message(&self) -> impl Future<Output = ()> {
        self.queue.wait_async_then(
            FUTURES,
            Place::EMPTY,
            |state, _, waiting| Admit::if_ready(state.holds_message_past_arms(waiting)),
            // Arms and watchers belong to tasks and threads: their wakes run no code of a future.
            || {
                if !self.has_slots() {
                    self.queue.with(State::open_to_arms);
                }
            },
            |state, _, waiting, left| {
                if left == Left::Served {
                    state.notify_future(waiting);
                }
            },
            |_, _| (),
        )
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
}

type LockedChannel<'a, T> = LockedQueue<'a, State<T>, Place<T>, LANES>;

type ChannelQueue<T> = WaitQueue<State<T>, Place<T>, LANES>;

/// A channel out of whose queue a message is taken. Its drop gives the slot to the waiters, unlocks, and frees the spent block.
///
/// So that comes after the message has been moved, once, into the result.
struct Freed<'a, T> {
    queue: Option<LockedChannel<'a, T>>,
    _spent: Option<Box<Block<T>>>,
}

impl<T> Drop for Freed<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take()
            && !queue.has_no_entries()
        {
            pass_room_on(queue);
        }
    }
}

/// Gives a slot that came free to the waiters.
#[inline(never)]
fn pass_room_on<T>(queue: LockedChannel<'_, T>) {
    queue.with(State::pass_room_on);
}

/// Notifies the present watchers of a channel. They are tasks and threads: no code of a future runs.
#[cold]
fn tell_watchers<T>(queue: &ChannelQueue<T>) {
    queue.with(|_, waiting| waiting.serve_all(WATCHERS));
}

/// Sends the message of a sender, or has the sender wait. At the end the message stays in its place.
fn send_from<T>(place: &mut Place<T>, state: &mut State<T>, waiting: &mut Waiting<'_, T>) -> Admit<bool> {
    if let Some(receiver) = state.serve_receiver(waiting) {
        mem::swap(place, receiver);
        return Admit::Done(false);
    }
    match state.take_slot_and_tell(waiting) {
        Ok(slot) => {
            if let Some(message) = place.take() {
                slot.fill(message);
            }
            Admit::Done(true)
        }
        Err(Refused::Disconnected) => Admit::Done(false),
        // A queue that can be full does not grow.
        Err(Refused::Full | Refused::Cramped) => Admit::Back,
    }
}
