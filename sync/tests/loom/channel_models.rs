//! Senders and receivers that wait, give and take.

use std::sync::Arc;

use loom::thread;

use crate::channel::outcome::{Put, Take};
use crate::channel::places::{Receiving, Sending};
use crate::channel::state::State;
use crate::primitive::check_bounded;
use crate::wait::list::Node;
use crate::wait::{Lock, RawWake, Sleeper};

/// A channel, and one who waits at it. The node belongs to the model, which outlives all who touch it.
pub(crate) struct Waiting<N> {
    pub(crate) state: Lock<State<u32>>,
    pub(crate) node: Node<N>,
    pub(crate) sleeper: Arc<Sleeper>,
}

// SAFETY: state and node are only touched under the lock, or by the sleeper after its wake.
unsafe impl<N> Sync for Waiting<N> {}
// SAFETY: as above.
unsafe impl<N> Send for Waiting<N> {}

impl<N> Waiting<N> {
    pub(crate) fn new(capacity: Option<usize>, data: N) -> Arc<Self> {
        let waiting = Waiting {
            state: Lock::new(State::new(capacity)),
            node: Node::with(data),
            sleeper: Sleeper::new(),
        };
        drop(waiting.state.lock());
        let _ = waiting.sleeper.word.begin(false);
        Arc::new(waiting)
    }

    pub(crate) fn wake(&self) -> RawWake {
        self.sleeper.raw()
    }

    pub(crate) fn put(&self, message: u32) -> Option<u32> {
        put(&self.state, message)
    }

    pub(crate) fn take(&self) -> Option<u32> {
        take(&self.state)
    }
}

/// Sends without waiting; the message if it was not sent.
pub(crate) fn put(state: &Lock<State<u32>>, message: u32) -> Option<u32> {
    let put = state.lock().put(message);
    match put {
        Put::Queued { .. } => None,
        Put::Handed(wake) => {
            wake.wake();
            None
        }
        Put::Full(message) | Put::Disconnected(message) => Some(message),
        Put::Cramped(_) => unreachable!("a ring needs no blocks"),
    }
}

/// Receives without waiting.
pub(crate) fn take(state: &Lock<State<u32>>) -> Option<u32> {
    let take = state.lock().take();
    received(take)
}

/// The same, past the arms of selects that wait to send.
pub(crate) fn take_past_arms(state: &Lock<State<u32>>) -> Option<u32> {
    let take = state.lock().take_past_arms();
    received(take)
}

fn received(take: Take<u32>) -> Option<u32> {
    match take {
        Take::Message(message, taken) => {
            if let Some(wake) = taken.freed.and_then(|freed| freed.wake) {
                wake.wake();
            }
            Some(message)
        }
        Take::Arm | Take::Empty | Take::Disconnected => None,
    }
}

impl Waiting<Receiving<u32>> {
    /// Enlists, unless there is something to receive.
    fn enlist(&self) -> bool {
        let mut state = self.state.lock();
        let waits = !state.may_receive();
        if waits {
            // SAFETY: the node is in no list, lives in the model's `Arc`, and is only touched under this lock.
            let _ = unsafe { state.await_message(&self.node, self.wake()) };
        }
        waits
    }
}

/// Hunts: a message that is put beside a receiver that goes to sleep for it.
#[test]
fn a_receiver_sleeps_only_while_there_is_nothing() {
    check_bounded(3, || {
        let channel = Waiting::new(Some(1), Receiving::new());
        let sender = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || assert_eq!(channel.put(7), None))
        };
        let received = match channel.enlist() {
            true => {
                channel.sleeper.leave_stack();
                channel.node.data().message.take()
            }
            false => channel.take(),
        };
        assert_eq!(received, Some(7));
        sender.join().unwrap();
        channel.sleeper.assert_even();
    });
}

/// Hunts: a message that is given to a receiver whose time has run out, or to nobody.
#[test]
fn a_message_that_comes_with_the_deadline_is_received_or_stays() {
    check_bounded(3, || {
        let channel = Waiting::new(Some(1), Receiving::new());
        assert!(channel.enlist());
        let sender = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || assert_eq!(channel.put(7), None))
        };
        // The deadline has passed: the receiver is on its stack again.
        // SAFETY: the node is in this list or in none.
        let withdrawn = unsafe { channel.state.lock().withdraw_receiver(&channel.node) };
        if !withdrawn {
            channel.sleeper.await_landing();
        }
        let given = channel.node.data().message.take();
        sender.join().unwrap();
        assert_eq!(given.is_some(), !withdrawn);
        assert_eq!(given.or_else(|| channel.take()), Some(7));
        assert_eq!(channel.take(), None);
    });
}

/// Hunts: a message that is taken from a sender that keeps it as well, when its time runs out at a rendezvous.
#[test]
fn a_sender_whose_time_runs_out_has_sent_or_keeps_its_message() {
    check_bounded(3, || times_out_with(Waiting::new(Some(0), Sending::message(7)), vec![7]));
}

/// Hunts: the same, when room comes free with the deadline.
#[test]
fn a_sender_whose_time_runs_out_has_room_or_keeps_its_message() {
    check_bounded(3, || {
        let channel = Waiting::new(Some(1), Sending::message(7));
        assert_eq!(channel.put(6), None);
        times_out_with(channel, vec![6, 7]);
    });
}

fn times_out_with(channel: Arc<Waiting<Sending<u32>>>, messages: Vec<u32>) {
    // SAFETY: the node is in no list, lives in the model's `Arc`, and is only touched under this lock.
    let _ = unsafe { channel.state.lock().await_room(&channel.node, channel.wake()) };
    let receiver = {
        let channel = Arc::clone(&channel);
        thread::spawn(move || channel.take())
    };
    // SAFETY: the node is in this list or in none.
    let withdrawn = unsafe { channel.state.lock().withdraw_sender(&channel.node) };
    if !withdrawn {
        channel.sleeper.await_landing();
    }
    let kept = channel.node.data().message.take();
    let received = receiver.join().unwrap();
    assert_eq!(kept.is_some(), withdrawn);
    let all: Vec<_> = received.into_iter().chain(channel.take()).chain(kept).collect();
    assert_eq!(all, messages);
}

/// Hunts: a message that comes as its future goes away, and of which the next future hears nothing.
#[test]
fn a_future_that_leaves_passes_its_notification_on() {
    check_bounded(3, || {
        let channel = Waiting::new(Some(1), ());
        let next = Waiting::new(Some(1), ());
        // SAFETY: the nodes are in no list, live in the model's `Arc`s, and are only touched under this lock.
        unsafe {
            let mut state = channel.state.lock();
            let _ = state.enlist_future(&channel.node, channel.wake());
            let _ = state.enlist_future(&next.node, next.wake());
        }
        let sender = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || {
                assert_eq!(channel.put(7), None);
                notify_future(&channel.state);
            })
        };
        // SAFETY: the node is in this list or in none.
        if !unsafe { channel.state.lock().withdraw_future(&channel.node) } {
            channel.sleeper.await_landing();
            notify_future(&channel.state);
        }
        next.sleeper.leave_stack();
        assert_eq!(channel.take(), Some(7));
        sender.join().unwrap();
    });
}

fn notify_future(state: &Lock<State<u32>>) {
    let notified = state.lock().next_future();
    if let Some(wake) = notified {
        wake.wake();
    }
}
