//! The select arm that sends.
//!
//! It has no message before it is selected. Selected it gets a permit, which sends one message without waiting.

#![forbid(unsafe_code)]

use std::cell::{Cell, OnceCell};

use super::arm::{Arm, Purpose};
use super::error::TrySendError;
use super::operation::{Erased, Operation, Target};
use super::permit::Permit;
use super::places::{Grant, Place};
use super::sender::Sender;
use super::shared::arms::ChannelArm;
use super::state::State;
use crate::wait;

/// The arm `send(sender, _)`.
pub struct SendArm<'a, T> {
    sender: &'a Sender<T>,
    /// Made for a wait.
    place: OnceCell<ChannelArm<'a, T>>,
    outcome: Cell<Option<Permit<'a, T>>>,
}

impl<'a, T> SendArm<'a, T> {
    /// Makes an arm for `sender`.
    #[inline]
    pub fn new(sender: &'a Sender<T>) -> Self {
        SendArm { sender, place: OnceCell::new(), outcome: Cell::new(None) }
    }

    /// Returns the right to send, after the arm was selected.
    pub fn permit(&self) -> Permit<'a, T> {
        self.outcome.take().expect("only the arm that was chosen is completed")
    }

    fn keep(&self, grant: Option<Grant<T>>) {
        self.outcome.set(Some(Permit::new(self.sender.channel(), grant)));
    }
}

impl<T> Arm for SendArm<'_, T> {
    fn try_now(&self) -> bool {
        match self.sender.channel().reserve() {
            Ok(grant) => self.keep(Some(grant)),
            Err(TrySendError::Disconnected(())) => self.keep(None),
            Err(TrySendError::Full(())) => return false,
        }
        true
    }

    fn place(&self, purpose: Purpose) -> Option<&dyn wait::Arm> {
        let channel = self.sender.channel();
        let place = self.place.get_or_init(|| channel.send_arm());
        channel.aim_send_arm(place, purpose);
        Some(place)
    }

    fn accept(&self) -> bool {
        let grant = self.place.get().and_then(|place| place.with_data(Place::take_grant));
        let is_granted = grant.is_some();
        if is_granted {
            self.keep(grant);
        }
        is_granted
    }

    fn is_ready(&self) -> bool {
        self.sender.channel().look(State::may_reserve)
    }
}

impl<T> Operation for SendArm<'_, T> {
    fn abandon(&self) {
        drop(self.outcome.take());
    }

    fn target(&self) -> Target {
        self.sender.target()
    }

    fn renew(&self) -> Erased {
        Erased::new(SendArm::new(self.sender))
    }
}
