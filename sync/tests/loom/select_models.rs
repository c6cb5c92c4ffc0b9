//! Selects at two channels, and send arms that hold what they were given.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::thread;

use crate::channel::{Arm, Permit, Receiver, Select, SendArm, Sender};
use crate::channel_end_models::channel;
use crate::primitive::check_bounded;
use crate::wait::{Tickets, over};

type Ends = (Sender<u32>, Receiver<u32>);

/// Finds: two messages for one select, a message that is lost with the arm that lost, a second wake.
#[test]
fn of_two_messages_one_is_received_and_one_stays() {
    check_bounded(2, || {
        let ends: [Ends; 2] = [0, 1].map(|_| channel(Some(1)));
        let sends = [0, 1].map(|number| {
            let sender = ends[number].0.clone();
            thread::spawn(move || sender.try_send(number as u32).unwrap())
        });
        let mut select = Select::new_biased();
        ends.iter().for_each(|(_, receiver)| _ = select.recv(receiver));
        let operation = select.select();
        let arm = operation.index();
        assert_eq!(operation.recv(&ends[arm].1), Ok(arm as u32));
        sends.into_iter().for_each(|send| send.join().unwrap());
        assert!(ends[arm].1.try_recv().is_err());
        assert_eq!(ends[1 - arm].1.try_recv(), Ok(1 - arm as u32));
    });
}

/// Finds: a message that is given to a select after its deadline.
#[test]
fn a_message_is_received_or_the_time_is_over() {
    check_bounded(3, || {
        let ends: [Ends; 2] = [0, 1].map(|_| channel(Some(1)));
        let sends = {
            let sender = ends[1].0.clone();
            thread::spawn(move || sender.try_send(1).unwrap())
        };
        let given = {
            let mut select = Select::new_biased();
            ends.iter().for_each(|(_, receiver)| _ = select.recv(receiver));
            select.select_deadline(over()).ok().map(|operation| operation.recv(&ends[1].1).unwrap())
        };
        sends.join().unwrap();
        assert_eq!(given.or_else(|| ends[1].1.try_recv().ok()), Some(1));
        assert!(ends[1].1.try_recv().is_err());
    });
}

/// Finds: room that is reserved for a select twice, or for a select that has gone.
#[test]
fn room_is_reserved_for_one_arm_or_stays_free() {
    check_bounded(2, || {
        let ends: [Ends; 2] = [0, 1].map(|_| channel(Some(1)));
        ends.iter().for_each(|(sender, _)| sender.try_send(7).unwrap());
        let receives = [0, 1].map(|number| {
            let receiver = ends[number].1.clone();
            thread::spawn(move || assert_eq!(receiver.try_recv(), Ok(7)))
        });
        let mut select = Select::new_biased();
        ends.iter().for_each(|(sender, _)| _ = select.send(sender));
        let selected = select.select_deadline(over()).ok();
        receives.into_iter().for_each(|receive| receive.join().unwrap());
        let arm = selected.as_ref().map(|operation| operation.index());
        for (number, (sender, _)) in ends.iter().enumerate() {
            assert_eq!(sender.try_send(9).is_ok(), arm != Some(number), "room is reserved for the arm alone");
        }
        if let Some(operation) = selected {
            operation.send(&ends[arm.unwrap()].0, 9).unwrap();
        }
    });
}

/// Finds: a receiver that holds still for a select and is woken before its message is there, or never.
#[test]
fn a_receiver_holds_still_until_it_has_the_message() {
    check_bounded(3, || {
        let (sender, receiver) = channel(Some(0));
        let receives = thread::spawn(move || {
            let received = receiver.try_recv().ok();
            (receiver, received)
        });
        let mut select = Select::new_biased();
        select.send(&sender);
        let selected = select.select_deadline(over()).map(|operation| operation.send(&sender, 7).unwrap());
        let (_receiver, received) = receives.join().unwrap();
        assert_eq!(received, selected.ok().map(|()| 7));
    });
}

/// Takes the right to send, if it is to be had without a wait.
fn reserve(sender: &Sender<u32>) -> Option<Permit<'_, u32>> {
    let arm = SendArm::new(sender);
    arm.try_now().then(|| arm.permit())
}

/// Finds: a chosen send arm that gives up while a receiver holds still for it, and leaves it asleep.
#[test]
fn a_receiver_that_was_given_up_tries_again() {
    check_bounded(3, || {
        let (sender, receiver) = channel(Some(0));
        let receives = thread::spawn(move || receiver.recv());
        drop(reserve(&sender));
        sender.send(7).unwrap();
        assert_eq!(receives.join().unwrap(), Ok(7));
    });
}

/// Finds: room that a receiver makes, and that neither the future which waits for it gets nor a select that leaves meanwhile.
#[test]
fn a_future_that_waits_for_room_has_it_before_a_select() {
    check_bounded(2, || {
        let (sender, receiver) = channel(Some(1));
        let permit = reserve(&sender).expect("it is empty");
        let mut sends = Box::pin(sender.send_async(2));
        let mut poll = || sends.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(!poll());
        let selects = {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut select = Select::new_biased();
                select.send(&sender);
                select.select_deadline(over()).map(|operation| operation.send(&sender, 3).unwrap()).is_ok()
            })
        };
        // Neither the future nor the select has a message before it has room.
        assert!(receiver.try_recv().is_err());
        permit.send(1).unwrap();
        assert_eq!(receiver.try_recv(), Ok(1));
        assert!(poll());
        assert_eq!(receiver.try_recv(), Ok(2));
        let selected = selects.join().unwrap();
        assert_eq!(receiver.try_recv().ok(), selected.then_some(3));
    });
}

/// Finds: a receiver that is lent to a select which has come for room, and sleeps on beside the message of the slot's holder; a
/// select that waits for room, and is not told when it comes free.
#[test]
fn a_receiver_gets_the_message_of_the_slot_while_a_select_waits_for_it() {
    check_bounded(1, || {
        let (sender, receiver) = channel(Some(1));
        let permit = reserve(&sender).expect("it is empty");
        let receives = thread::spawn(move || [receiver.recv(), receiver.recv()]);
        let selects = {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut select = Select::new_biased();
                select.send(&sender);
                select.select().send(&sender, 2).unwrap();
            })
        };
        permit.send(1).unwrap();
        assert_eq!(receives.join().unwrap(), [Ok(1), Ok(2)]);
        selects.join().unwrap();
    });
}

/// Finds: room that comes free after the end of the receivers, and is given to a sender whose message will not be received.
#[test]
fn room_that_is_given_up_at_the_end_of_the_receivers_leaves_each_sender_its_message() {
    check_bounded(3, || {
        let (sender, receiver) = channel(Some(1));
        let permit = reserve(&sender).expect("it is empty");
        let polls = Arc::new(Tickets::new());
        let waker = Waker::from(Arc::clone(&polls));
        let mut sends = Box::pin(sender.send_async(2));
        assert!(sends.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let ends = thread::spawn(move || drop(receiver));
        drop(permit);
        polls.take();
        match sends.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(sent) => {
                assert!(sent.is_ok() || sent.is_err_and(|refused| refused.into_inner() == 2))
            }
            Poll::Pending => unreachable!("it was told"),
        }
        ends.join().unwrap();
    });
}
