//! Selects: a sleeper with an arm at each of two channels, and send arms that hold what they were given.

use std::sync::Arc;

use loom::thread;

use crate::channel::outcome::{Pairing, Put, Reserve};
use crate::channel::places::{Grant, Receiving, Sending};
use crate::channel::state::State;
use crate::channel_models::{put, take, take_past_arms};
use crate::primitive::check_bounded;
use crate::wait::list::Node;
use crate::wait::{Claim, Lock, RawWake, Sleeper};

/// Two channels, and one that waits at both. The nodes belong to the model, which outlives all who touch them.
struct Both<N> {
    states: [Lock<State<u32>>; 2],
    nodes: [Node<N>; 2],
    claim: Claim,
    sleeper: Arc<Sleeper>,
    /// Who waits with the second node where that is no arm. Nobody looks after it.
    other: Arc<Sleeper>,
}

// SAFETY: states and nodes are only touched under their locks, or by the sleeper after its wake.
unsafe impl<N> Sync for Both<N> {}
// SAFETY: as above.
unsafe impl<N> Send for Both<N> {}

impl<N> Both<N> {
    fn new(capacity: usize, data: fn() -> N) -> Arc<Self> {
        Self::with(capacity, [data(), data()])
    }

    fn with(capacity: usize, data: [N; 2]) -> Arc<Self> {
        let both = Both {
            states: [0, 1].map(|_| Lock::new(State::new(Some(capacity)))),
            nodes: data.map(Node::with),
            claim: Claim::new(),
            sleeper: Sleeper::new(),
            other: asleep(),
        };
        both.states.iter().for_each(|state| drop(state.lock()));
        assert_eq!(both.claim.taken(), None);
        let _ = both.sleeper.word.begin(false);
        Arc::new(both)
    }

    fn wake(&self) -> RawWake {
        self.sleeper.raw()
    }
}

/// A select of two receives.
fn two_receives() -> Arc<Both<Receiving<u32>>> {
    let both = Both::new(1, Receiving::new);
    for arm in [0, 1] {
        // SAFETY: the node is in no list, lives in the model's `Arc` as the claim does, and is only touched under this lock.
        unsafe {
            both.states[arm].lock().await_message_for(&both.nodes[arm], both.wake(), &both.claim, arm);
        }
    }
    both
}

/// A select of two sends into channels that are full.
fn two_sends() -> Arc<Both<Sending<u32>>> {
    let both = Both::new(1, Sending::arm);
    for arm in [0, 1] {
        assert_eq!(put(&both.states[arm], arm as u32), None);
        // SAFETY: as above.
        unsafe { both.states[arm].lock().await_room_for(&both.nodes[arm], both.wake(), &both.claim, arm) };
    }
    both
}

/// Hunts: two messages for one select, a message that is lost with the arm that lost, a second wake.
#[test]
fn of_two_messages_one_is_received_and_one_stays() {
    check_bounded(3, || {
        let both = two_receives();
        let senders = [0, 1].map(|arm| {
            let both = Arc::clone(&both);
            thread::spawn(move || assert_eq!(put(&both.states[arm], arm as u32), None))
        });
        both.sleeper.leave_stack();
        let arm = both.claim.close().expect("who woke it has claimed it");
        for arm in [0, 1] {
            // SAFETY: the node is in this list or in none.
            unsafe { both.states[arm].lock().withdraw_receiver(&both.nodes[arm]) };
        }
        assert_eq!(both.nodes[arm].data().message.take(), Some(arm as u32));
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        both.sleeper.assert_even();
        assert_eq!(both.nodes[1 - arm].data().message.take(), None);
        assert_eq!(take(&both.states[arm]), None);
        assert_eq!(take(&both.states[1 - arm]), Some(1 - arm as u32));
    });
}

/// Hunts: a message that is given to a select whose time has run out.
#[test]
fn a_message_is_received_or_the_time_is_over() {
    check_bounded(3, || {
        let both = two_receives();
        let sender = {
            let both = Arc::clone(&both);
            thread::spawn(move || assert_eq!(put(&both.states[1], 1), None))
        };
        let claimed = both.claim.close();
        for arm in [0, 1] {
            // SAFETY: the node is in this list or in none.
            unsafe { both.states[arm].lock().withdraw_receiver(&both.nodes[arm]) };
        }
        if claimed.is_some() {
            both.sleeper.await_landing();
        }
        sender.join().unwrap();
        let given = both.nodes[1].data().message.take();
        assert_eq!(given.is_some(), claimed.is_some());
        assert_eq!(given.or_else(|| take(&both.states[1])), Some(1));
    });
}

/// Hunts: room that is reserved for a select twice, or for one that has gone.
#[test]
fn room_is_reserved_for_one_arm_or_stays_free() {
    check_bounded(3, || {
        let both = two_sends();
        let receivers = [0, 1].map(|arm| {
            let both = Arc::clone(&both);
            thread::spawn(move || assert_eq!(take(&both.states[arm]), Some(arm as u32)))
        });
        let claimed = both.claim.close();
        for arm in [0, 1] {
            // SAFETY: the node is in this list or in none.
            unsafe { both.states[arm].lock().withdraw_sender(&both.nodes[arm]) };
        }
        if claimed.is_some() {
            both.sleeper.await_landing();
        }
        receivers.into_iter().for_each(|receiver| receiver.join().unwrap());
        for arm in [0, 1] {
            let granted = both.nodes[arm].data().grant.take();
            assert_eq!(granted.is_some(), claimed == Some(arm));
            if granted.is_some() {
                assert_eq!(put(&both.states[arm], 9), Some(9), "the room is reserved");
                let _ = both.states[arm].lock().release();
            }
            assert_eq!(put(&both.states[arm], 9), None);
        }
    });
}

/// Hunts: a receiver that holds still for a select and is woken before its message is there, or never.
#[test]
fn a_receiver_holds_still_until_it_has_the_message() {
    check_bounded(3, || {
        let both = Both::new(0, Sending::arm);
        // SAFETY: the node is in no list, lives in the model's `Arc` as the claim does, and is only touched under this lock.
        unsafe { both.states[0].lock().await_room_for(&both.nodes[0], both.wake(), &both.claim, 0) };
        let receiver = {
            let both = Arc::clone(&both);
            thread::spawn(move || {
                let place = Receiving::new();
                let me = Sleeper::new();
                let _ = me.word.begin(true);
                let pairing = both.states[0].lock().pair(&place, me.raw());
                match pairing {
                    Pairing::Lent(sender) => {
                        sender.wake();
                        me.leave_stack();
                        place.message.take()
                    }
                    Pairing::Given(_) => unreachable!("nobody sends but an arm"),
                    Pairing::Alone => None,
                }
            })
        };
        let claimed = match receiver_or_time(&both) {
            true => {
                both.sleeper.await_landing();
                true
            }
            false => false,
        };
        if let Some(Grant::Partner(partner)) = both.nodes[0].data().grant.take() {
            assert!(claimed);
            partner.give(7);
        }
        assert_eq!(receiver.join().unwrap(), claimed.then_some(7));
    });
}

/// The time of the select has run out. True if it was claimed before.
fn receiver_or_time(both: &Both<Sending<u32>>) -> bool {
    let claimed = both.claim.close().is_some();
    // SAFETY: the node is in this list or in none.
    unsafe { both.states[0].lock().withdraw_sender(&both.nodes[0]) };
    claimed
}

/// Hunts: a chosen send arm that gives up while a receiver holds still for it, and leaves it asleep.
#[test]
fn a_receiver_that_was_given_up_tries_again() {
    check_bounded(3, || {
        let both = Both::new(0, Receiving::new);
        // SAFETY: as above.
        unsafe { both.states[0].lock().await_message(&both.nodes[0], both.wake()) };
        let chooser = {
            let both = Arc::clone(&both);
            thread::spawn(move || {
                let reserved = both.states[0].lock().reserve();
                match reserved {
                    Reserve::Granted(grant) => drop(grant),
                    Reserve::Full | Reserve::Disconnected => unreachable!("a receiver waits"),
                }
            })
        };
        both.sleeper.leave_stack();
        assert_eq!(both.nodes[0].data().message.take(), None);
        chooser.join().unwrap();
        both.sleeper.assert_even();
    });
}

/// A channel of one slot, which is reserved; the arm of a select waits for it, and behind that a sender.
fn reserved_with_senders() -> Arc<Both<Sending<u32>>> {
    let both = Both::with(1, [Sending::arm(), Sending::message(2)]);
    let mut state = both.states[0].lock();
    assert!(matches!(state.reserve(), Reserve::Granted(Grant::Room)));
    // SAFETY: the nodes are in no list, live in the model's `Arc` as the claim does, and are only touched under this lock.
    unsafe {
        let _ = state.await_room_for(&both.nodes[0], both.wake(), &both.claim, 0);
        let _ = state.await_room(&both.nodes[1], both.other.raw());
    }
    drop(state);
    both
}

/// Somebody who sleeps, and whom nobody looks after.
fn asleep() -> Arc<Sleeper> {
    let sleeper = Sleeper::new();
    let _ = sleeper.word.begin(true);
    sleeper
}

/// Hunts: a receiver that finds nothing, and would sleep, beside a sender that waits behind a select which leaves.
#[test]
fn a_receiver_sees_the_senders_while_all_room_is_reserved() {
    check_bounded(2, || {
        let both = reserved_with_senders();
        let leaver = {
            let both = Arc::clone(&both);
            thread::spawn(move || {
                let claimed = receiver_or_time(&both);
                if claimed {
                    both.sleeper.await_landing();
                }
                claimed
            })
        };
        // Not of the select, though that came first: it has no message, and is no partner where there are slots.
        assert_eq!(take_past_arms(&both.states[0]), Some(2));
        assert!(!both.states[0].lock().may_receive());
        // Who holds the slot sends, and finds no receiver in the list.
        let (put, freed) = both.states[0].lock().fulfil(1);
        assert!(matches!(put, Put::Queued { .. }) && freed.is_none_or(|freed| freed.wake.is_none()));
        assert_eq!(take(&both.states[0]), Some(1));
        // The room that came free is the select's, or it has left.
        let claimed = leaver.join().unwrap();
        let granted = both.nodes[0].data().grant.take();
        assert_eq!(matches!(granted, Some(Grant::Room)), claimed);
        assert_eq!(both.states[0].lock().is_full(), claimed);
    });
}

/// A channel of one slot, which is reserved; a receiver waits, which may be a future.
fn reserved_with_receiver() -> Arc<Both<Receiving<u32>>> {
    let both = Both::new(1, Receiving::new);
    let mut state = both.states[0].lock();
    assert!(matches!(state.reserve(), Reserve::Granted(Grant::Room)));
    // SAFETY: the node is in no list, lives in the model's `Arc`, and is only touched under this lock.
    let _ = unsafe { state.await_message(&both.nodes[0], both.wake()) };
    drop(state);
    both
}

/// Hunts: a receiver that is lent to a select which has come for room, and sleeps on beside the message of who holds the slot;
/// a select that waits for room, and is not told when it comes free.
#[test]
fn a_receiver_gets_the_message_of_the_slot_while_a_select_waits_for_it() {
    check_bounded(2, || {
        let both = reserved_with_receiver();
        let holder = {
            let both = Arc::clone(&both);
            thread::spawn(move || {
                let (put, freed) = both.states[0].lock().fulfil(1);
                freed.and_then(|freed| freed.wake).into_iter().for_each(RawWake::wake);
                match put {
                    Put::Handed(wake) => wake.wake(),
                    _ => unreachable!("a receiver waits, whoever else has come"),
                }
            })
        };
        let (arm, claim, me) = (Node::with(Sending::arm()), Claim::new(), asleep());
        let reserved = {
            let mut state = both.states[0].lock();
            match state.reserve() {
                Reserve::Full => {
                    assert!(!state.may_reserve_for(&claim), "it would go round and round");
                    // SAFETY: the node is in no list and stays until it was woken, as the claim does.
                    unsafe { state.await_room_for(&arm, me.raw(), &claim, 0) };
                    None
                }
                Reserve::Granted(grant) => Some(grant),
                Reserve::Disconnected => unreachable!("nobody ends it"),
            }
        };
        let grant = reserved.or_else(|| {
            me.leave_stack();
            arm.data().grant.take()
        });
        assert!(matches!(grant, Some(Grant::Room)));
        both.sleeper.leave_stack();
        assert_eq!(both.nodes[0].data().message.take(), Some(1), "before the select has made its own");
        holder.join().unwrap();
        let (put, _) = both.states[0].lock().fulfil(2);
        assert!(matches!(put, Put::Queued { .. }));
    });
}

/// Hunts: room that comes free after the end of the receivers, and is given to a sender whose message nobody will take.
#[test]
fn room_that_is_given_up_at_the_end_of_the_receivers_leaves_each_sender_its_message() {
    check_bounded(3, || {
        let both = reserved_with_senders();
        assert!(!receiver_or_time(&both), "the select leaves");
        let holder = {
            let both = Arc::clone(&both);
            thread::spawn(move || {
                let wake = both.states[0].lock().release().and_then(|freed| freed.wake);
                let granted = wake.is_some();
                wake.into_iter().for_each(RawWake::wake);
                granted
            })
        };
        let unreceived = {
            let mut state = both.states[0].lock();
            state.disconnect();
            state.take_unreceived()
        };
        let mut told = 0;
        while let Some(wake) = { both.states[0].lock().next_to_tell() } {
            wake.wake();
            told += 1;
        }
        let granted = holder.join().unwrap();
        assert_eq!(told, usize::from(!granted), "it is woken once");
        assert_eq!(both.nodes[1].data().message.take(), (!granted).then_some(2));
        assert_eq!(unreceived.len(), usize::from(granted));
    });
}
