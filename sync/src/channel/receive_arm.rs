//! The select arm that receives.

use std::cell::Cell;
use std::mem;
use std::time::Instant;

use super::arm::{Arm, Enlisted};
use super::error::RecvError;
use super::operation::{Erased, Operation, Target};
use super::places::Receiving;
use super::receiver::{Receiver, Source};
use crate::wait::list::Node;
use crate::wait::{self, Claim, WakeHandle};

/// The arm `recv(receiver)`. A sender puts the message into it.
pub struct RecvArm<'a, T> {
    receiver: &'a Receiver<T>,
    node: Node<Receiving<T>>,
    watch: Node<Cell<u64>>,
    outcome: Cell<Option<Result<T, RecvError>>>,
    /// True if a select gave up at the last try.
    let_down: Cell<bool>,
    /// When the message of a timer was due that the select slept for.
    awaited: Cell<Option<Instant>>,
}

impl<'a, T> RecvArm<'a, T> {
    /// Makes an arm for `receiver`.
    pub fn new(receiver: &'a Receiver<T>) -> Self {
        RecvArm {
            receiver,
            node: Node::with(Receiving::new()),
            watch: Node::with(Cell::new(0)),
            outcome: Cell::new(None),
            let_down: Cell::new(false),
            awaited: Cell::new(None),
        }
    }

    /// Returns what was received, after the arm was selected.
    pub fn complete(&self) -> Result<T, RecvError> {
        self.outcome.take().expect("only the arm that was chosen is completed")
    }

    /// Ends the borrow.
    pub fn end(self) {}
}

impl<T> Arm for RecvArm<'_, T> {
    fn try_now(&self) -> bool {
        self.let_down.set(false);
        let outcome = self.receiver.take_if_ready(&self.let_down, self.awaited.get());
        let chosen = outcome.is_some();
        self.outcome.set(outcome);
        chosen
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
            Source::Senders(_) | Source::Nobody => None,
        }
    }

    unsafe fn enlist(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted {
        let Source::Senders(channel) = &self.receiver.source else { return unsent(self) };
        let watched = {
            let mut state = channel.shared.state();
            if state.may_receive_for(claim) {
                return Enlisted::Ready;
            }
            // SAFETY: by the caller's contract the node is in no list and stays until it is withdrawn, as the claim does,
            // which lets one wake be used; all is touched under this lock only.
            unsafe { state.await_message_for(&self.node, me.raw(), claim, number) }
        };
        if watched {
            channel.shared.tell_send_watchers();
        }
        Enlisted::Waits
    }

    unsafe fn withdraw(&self) {
        if let Source::Senders(channel) = &self.receiver.source {
            // SAFETY: it was enlisted: the node is in this list or in none.
            unsafe { channel.shared.state().withdraw_receiver(&self.node) };
        }
    }

    fn accept(&self) -> bool {
        let message = self.node.data().message.take();
        let given = message.is_some();
        self.outcome.set(message.map(Ok));
        given
    }

    fn is_ready(&self) -> bool {
        match &self.receiver.source {
            Source::Senders(channel) => {
                let state = channel.shared.state();
                match wait::may_suspend() {
                    true => state.may_receive(),
                    false => state.holds_message_past_arms(),
                }
            }
            Source::Clock(timer) => timer.is_ready(),
            Source::Nobody => false,
        }
    }

    unsafe fn watch(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted {
        let Source::Senders(channel) = &self.receiver.source else { return unsent(self) };
        let mut state = channel.shared.state();
        if state.may_receive() {
            return Enlisted::Ready;
        }
        // SAFETY: as in `enlist`.
        unsafe { state.receive_watchers().join_for(&self.watch, me.raw(), claim, number) };
        Enlisted::Waits
    }

    unsafe fn unwatch(&self) {
        if let Source::Senders(channel) = &self.receiver.source {
            // SAFETY: it was watched: the node is in this list or in none.
            unsafe { channel.shared.state().receive_watchers().leave(&self.watch) };
        }
    }
}

impl<T> Operation for RecvArm<'_, T> {
    fn begin(&self) {
        self.awaited.set(None);
    }

    fn abandon(&self) {
        // Not dropped: the message may not be `Send`. Only a misuse comes here.
        mem::forget(self.outcome.take());
    }

    fn target(&self) -> Target {
        self.receiver.target()
    }

    fn renew(&self) -> Erased {
        Erased::new(RecvArm::new(self.receiver))
    }
}

/// Enlists an arm of a timer, which publishes nothing: the select sleeps until the timer is due.
fn unsent(arm: &impl Arm) -> Enlisted {
    match arm.is_ready() {
        true => Enlisted::Ready,
        false => Enlisted::Waits,
    }
}
