//! The operations of a channel that have no message yet: reservations, and the arms of selects.

#![forbid(unsafe_code)]

use std::time::Instant;

use super::super::arm::Purpose;
use super::super::error::{SendError, SendTimeoutError, TrySendError};
use super::super::places::{Grant, LANES, Place, RECEIVERS, SENDERS, WATCHERS};
use super::super::state::State;
use super::{RECEIVE, SEND, Shared, tell_watchers};
use crate::wait::{Admit, ArmRules, Outcome, QueueArm, Until};

/// A place in a channel for an arm of a select.
pub(crate) type ChannelArm<'a, T> = QueueArm<'a, State<T>, Place<T>, LANES>;

type Rules<T> = ArmRules<State<T>, Place<T>, LANES>;

impl<T> Shared<T> {
    /// Selects a send arm, if it need not wait.
    pub(crate) fn reserve(&self) -> Result<Grant<T>, TrySendError<()>> {
        self.queue.with(State::reserve)
    }

    /// Waits for a right to send, where a slot can be reserved.
    pub(crate) fn reserve_slow(&self, deadline: Option<Instant>) -> Result<Grant<T>, SendTimeoutError<()>> {
        loop {
            let (outcome, grant) = self.queue.wait_then(
                SENDERS,
                Place::ARM,
                Until::unwind(deadline).spinning().described(&SEND),
                |state, _, waiting| Admit::if_ready(state.may_reserve(waiting)),
                || (),
                |_, _, _, _| (),
                |outcome, place| (outcome, place.take_grant()),
            );
            match (self.reserve_after(grant), outcome) {
                (Ok(grant), _) => return Ok(grant),
                (Err(TrySendError::Disconnected(())), _) => return Err(SendTimeoutError::Disconnected(())),
                (Err(TrySendError::Full(())), Outcome::TimedOut) => {
                    return Err(SendTimeoutError::Timeout(()));
                }
                (Err(TrySendError::Full(())), _) => {}
            }
        }
    }

    /// Says what a wait for a right to send has brought; without one it tries again.
    fn reserve_after(&self, grant: Option<Grant<T>>) -> Result<Grant<T>, TrySendError<()>> {
        grant.map_or_else(|| self.reserve(), Ok)
    }

    /// Waits for a right to send, as a future, where a slot can be reserved. None if no receiver is left.
    pub(crate) async fn reserve_async(&self) -> Option<Grant<T>> {
        let mut reserved = self.reserve();
        loop {
            match reserved {
                Ok(grant) => return Some(grant),
                Err(TrySendError::Disconnected(())) => return None,
                Err(TrySendError::Full(())) => {}
            }
            let waits = self.queue.wait_async_then(
                SENDERS,
                Place::ARM,
                |state, _, waiting| Admit::if_ready(state.may_reserve(waiting)),
                || (),
                |state, place, waiting, _| {
                    if matches!(place, Place::Arm(Some(Grant::Room))) {
                        state.release(waiting);
                    }
                },
                |_, place| place.take_grant(),
            );
            reserved = self.reserve_after(waits.await);
        }
    }

    /// Sends into a slot that was reserved.
    pub(crate) fn fulfil(&self, message: T) -> Result<(), SendError<T>> {
        let refused = |message| Err(SendError(message));
        self.put::<true, _>(self.enter(), message, || Ok(()), refused, refused)
    }

    /// Gives up a slot that was reserved.
    pub(crate) fn release(&self) {
        self.queue.with(State::release);
    }

    /// Makes the place of a receive arm of a select.
    #[inline]
    pub(crate) fn receive_arm(&self) -> ChannelArm<'_, T> {
        QueueArm::new(&self.queue, RECEIVERS, Place::EMPTY, &Self::RECEIVE).described(&RECEIVE)
    }

    /// Makes the place of a send arm of a select.
    #[inline]
    pub(crate) fn send_arm(&self) -> ChannelArm<'_, T> {
        QueueArm::new(&self.queue, SENDERS, Place::ARM, &Self::SEND).described(&SEND)
    }

    /// Lets a select receive by this arm, or watch for something to receive.
    pub(crate) fn aim_receive_arm<'a>(&'a self, arm: &ChannelArm<'a, T>, purpose: Purpose) {
        match (purpose, self.has_slots()) {
            (Purpose::Watch, _) => arm.move_to(WATCHERS, &Self::RECEIVE),
            (Purpose::Act, true) => arm.move_to(RECEIVERS, &Self::RECEIVE),
            (Purpose::Act, false) => arm.move_to(RECEIVERS, &Self::RECEIVE_AT_RENDEZVOUS),
        }
    }

    /// Lets a select send by this arm, or watch for room.
    pub(crate) fn aim_send_arm<'a>(&'a self, arm: &ChannelArm<'a, T>, purpose: Purpose) {
        match (purpose, self.has_slots()) {
            (Purpose::Watch, _) => arm.move_to(WATCHERS, &Self::SEND),
            (Purpose::Act, true) => arm.move_to(SENDERS, &Self::SEND),
            (Purpose::Act, false) => arm.move_to(SENDERS, &Self::SEND_AT_RENDEZVOUS),
        }
    }

    const RECEIVE: Rules<T> = ArmRules::new(|state, _, waiting| state.may_receive(waiting));
    const SEND: Rules<T> = ArmRules::new(|state, _, waiting| state.may_reserve(waiting));
    // Elsewhere than at a rendezvous an arm waits for what is not there, and gives watchers nothing to do.
    const RECEIVE_AT_RENDEZVOUS: Rules<T> = ArmRules { published: tell_watchers, ..Self::RECEIVE };
    const SEND_AT_RENDEZVOUS: Rules<T> = ArmRules { published: tell_watchers, ..Self::SEND };
}
