//! The select arm that receives.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::mem;
use std::time::Instant;

use fibra_runtime::clock;

use super::arm::{Arm, Purpose};
use super::error::{RecvError, TryRecvError};
use super::operation::{Erased, Operation, Target};
use super::places::Place;
use super::receiver::{Receiver, Source};
use super::shared::Shared;
use super::shared::arms::ChannelArm;
use super::state::State;
use crate::wait;

/// The arm `recv(receiver)`.
///
/// An arm that was selected without a message or a time has found its channel disconnected.
pub struct RecvArm<'a, T> {
    receiver: &'a Receiver<T>,
    /// Room for the message, of a sender that finds the arm waiting or of a try. None for a receiver without senders.
    place: Option<ChannelArm<'a, T>>,
    /// When the message of a timer was due that was received.
    due: Cell<Option<Instant>>,
    /// True if a select gave up at the last try.
    let_down: Cell<bool>,
    /// When the message of a timer was due that the select slept for.
    awaited: Cell<Option<Instant>>,
}

impl<'a, T> RecvArm<'a, T> {
    /// Makes an arm for `receiver`.
    #[inline]
    pub fn new(receiver: &'a Receiver<T>) -> Self {
        RecvArm {
            receiver,
            place: receiver.channel().map(Shared::receive_arm),
            due: Cell::new(None),
            let_down: Cell::new(false),
            awaited: Cell::new(None),
        }
    }

    /// Returns what was received, after the arm was selected.
    pub fn complete(&self) -> Result<T, RecvError> {
        match (&self.place, &self.receiver.source) {
            (Some(place), _) => place.with_data(Place::take).ok_or(RecvError),
            (None, Source::Clock(timer)) => self.due.take().map(timer.message).ok_or(RecvError),
            (None, _) => Err(RecvError),
        }
    }
}

impl<T> Arm for RecvArm<'_, T> {
    fn try_now(&self) -> bool {
        self.let_down.set(false);
        match (&self.place, &self.receiver.source) {
            (Some(place), Source::Senders(channel)) => {
                match channel.shared.try_recv(Some(&self.let_down)) {
                    Ok(message) => place.with_data(|place| place.give(message)),
                    Err(TryRecvError::Disconnected) => {}
                    Err(TryRecvError::Empty) => return false,
                }
                true
            }
            (_, Source::Clock(timer)) => {
                self.due.set(timer.take(clock::now(), self.awaited.get()));
                self.due.get().is_some()
            }
            _ => false,
        }
    }

    fn was_let_down(&self) -> bool {
        self.let_down.get()
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.receiver.source {
            Source::Clock(timer) => {
                self.awaited.set(timer.due());
                self.awaited.get()
            }
            Source::Senders(_) | Source::Never => None,
        }
    }

    fn place(&self, purpose: Purpose) -> Option<&dyn wait::Arm> {
        let place = self.place.as_ref()?;
        self.receiver.channel()?.aim_receive_arm(place, purpose);
        Some(place)
    }

    fn accept(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.with_data(|place| place.has_message()))
    }

    fn is_ready(&self) -> bool {
        match &self.receiver.source {
            Source::Senders(channel) => channel.shared.look(match wait::may_suspend() {
                true => State::may_receive,
                false => State::holds_message_past_arms,
            }),
            Source::Clock(timer) => timer.is_ready(),
            Source::Never => false,
        }
    }
}

impl<T> Operation for RecvArm<'_, T> {
    fn begin(&self) {
        self.awaited.set(None);
    }

    fn abandon(&self) {
        // Not dropped: the message may not be `Send`. Only a misuse comes here.
        mem::forget(self.complete());
    }

    fn target(&self) -> Target {
        self.receiver.target()
    }

    fn renew(&self) -> Erased {
        Erased::new(RecvArm::new(self.receiver))
    }
}
