//! The select arm that sends.
//!
//! It has no message before it is selected. Selected it gets a permit, which sends one message without waiting.

use std::cell::Cell;
use std::time::Instant;

use super::arm::{Arm, Enlisted};
use super::error::SendError;
use super::operation::{Erased, Operation, Target};
use super::outcome::Reserve;
use super::places::{Grant, Sending};
use super::sender::Sender;
use super::shared::Shared;
use crate::wait::list::Node;
use crate::wait::{Claim, WakeHandle};

/// The arm `send(sender, _)`.
pub struct SendArm<'a, T> {
    sender: &'a Sender<T>,
    node: Node<Sending<T>>,
    watch: Node<Cell<u64>>,
    outcome: Cell<Option<Permit<'a, T>>>,
}

/// The right to send one message without waiting. Dropped unused it passes to the next sender.
pub struct Permit<'a, T> {
    channel: &'a Shared<T>,
    /// None if no receiver is left, or after use.
    grant: Option<Grant<T>>,
}

impl<'a, T> SendArm<'a, T> {
    /// Makes an arm for `sender`.
    pub fn new(sender: &'a Sender<T>) -> Self {
        SendArm {
            sender,
            node: Node::with(Sending::arm()),
            watch: Node::with(Cell::new(0)),
            outcome: Cell::new(None),
        }
    }

    /// Returns the right to send, after the arm was selected.
    pub fn permit(&self) -> Permit<'a, T> {
        self.outcome.take().expect("only the arm that was chosen is completed")
    }

    /// Ends the borrow.
    pub fn end(self) {}

    fn keep(&self, grant: Option<Grant<T>>) {
        self.outcome.set(Some(Permit { channel: self.sender.channel(), grant }));
    }
}

impl<T> Permit<'_, T> {
    /// Sends a message.
    pub fn send(mut self, message: T) -> Result<(), SendError<T>> {
        match self.grant.take() {
            Some(Grant::Room) => self.channel.fulfil(message),
            Some(Grant::Partner(partner)) => {
                partner.give(message);
                Ok(())
            }
            None => Err(SendError(message)),
        }
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        match self.grant.take() {
            Some(Grant::Room) => self.channel.release(),
            // Wakes the receiver without a message.
            Some(Grant::Partner(partner)) => drop(partner),
            None => {}
        }
    }
}

impl<T> Arm for SendArm<'_, T> {
    fn try_now(&self) -> bool {
        match self.sender.channel().reserve() {
            Reserve::Granted(grant) => self.keep(Some(grant)),
            Reserve::Disconnected => self.keep(None),
            Reserve::Full => return false,
        }
        true
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    unsafe fn enlist(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted {
        let channel = self.sender.channel();
        let watched = {
            let mut state = channel.state();
            if state.may_reserve_for(claim) {
                return Enlisted::Ready;
            }
            // SAFETY: by the caller's contract the node is in no list and stays until it is withdrawn, as the claim does,
            // which lets one wake be used; all is touched under this lock only.
            unsafe { state.await_room_for(&self.node, me.raw(), claim, number) }
        };
        if watched {
            channel.tell_receive_watchers();
        }
        Enlisted::Waits
    }

    unsafe fn withdraw(&self) {
        // SAFETY: it was enlisted: the node is in this list or in none.
        unsafe { self.sender.channel().state().withdraw_sender(&self.node) };
    }

    fn accept(&self) -> bool {
        let grant = self.node.data().grant.take();
        let granted = grant.is_some();
        if granted {
            self.keep(grant);
        }
        granted
    }

    fn is_ready(&self) -> bool {
        self.sender.channel().state().may_reserve()
    }

    unsafe fn watch(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted {
        let mut state = self.sender.channel().state();
        if state.may_reserve() {
            return Enlisted::Ready;
        }
        // SAFETY: as in `enlist`.
        unsafe { state.send_watchers().join_for(&self.watch, me.raw(), claim, number) };
        Enlisted::Waits
    }

    unsafe fn unwatch(&self) {
        // SAFETY: it was watched: the node is in this list or in none.
        unsafe { self.sender.channel().state().send_watchers().leave(&self.watch) };
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
