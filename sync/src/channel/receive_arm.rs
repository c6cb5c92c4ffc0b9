//! The select arm that receives.

#![forbid(unsafe_code)]

use std::cell::{Cell, OnceCell, RefCell};
use std::mem;
use std::time::Instant;

use super::arm::{Arm, Purpose};
use super::error::{RecvError, TryRecvError};
use super::operation::{Erased, Operation, Target};
use super::places::Place;
use super::receiver::{Receiver, Source};
use super::shared::arms::ChannelArm;
use super::state::State;
use crate::wait;

/// The arm `recv(receiver)`. A sender puts the message into it.
pub struct RecvArm<'a, T> {
    receiver: &'a Receiver<T>,
    /// Made for a wait.
    place: OnceCell<ChannelArm<'a, T>>,
    /// What was received by an arm that was selected. Nothing: the channel is disconnected.
    received: RefCell<Place<T>>,
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
            place: OnceCell::new(),
            received: RefCell::new(Place::EMPTY),
            let_down: Cell::new(false),
            awaited: Cell::new(None),
        }
    }

    /// Returns what was received, after the arm was selected.
    pub fn complete(&self) -> Result<T, RecvError> {
        match self.received.borrow_mut().take() {
            Some(message) => Ok(message),
            None => Err(RecvError),
        }
    }
}

impl<T> Arm for RecvArm<'_, T> {
    fn try_now(&self) -> bool {
        self.let_down.set(false);
        match self.receiver.try_recv_in_select(&self.let_down, self.awaited.get()) {
            Ok(message) => {
                self.received.borrow_mut().give(message);
                true
            }
            Err(TryRecvError::Disconnected) => true,
            Err(TryRecvError::Empty) => false,
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
        let channel = self.receiver.channel()?;
        let place = self.place.get_or_init(|| channel.receive_arm());
        channel.aim_receive_arm(place, purpose);
        Some(place)
    }

    fn accept(&self) -> bool {
        let Some(place) = self.place.get() else { return false };
        let mut received = self.received.borrow_mut();
        place.with_data(|place| mem::swap(place, &mut received));
        received.has_message()
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
        mem::forget(self.received.borrow_mut().take());
    }

    fn target(&self) -> Target {
        self.receiver.target()
    }

    fn renew(&self) -> Erased {
        Erased::new(RecvArm::new(self.receiver))
    }
}
