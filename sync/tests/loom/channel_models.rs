//! Senders and receivers that wait, give and take, by what users call.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::thread;

use crate::channel_end_models::channel;
use crate::primitive::check_bounded;
use crate::wait::{Tickets, over};

/// Finds: a message that is put beside a receiver that goes to sleep for it.
#[test]
fn a_receiver_sleeps_only_while_there_is_nothing() {
    check_bounded(3, || {
        let (sender, receiver) = channel(Some(1));
        let sends = thread::spawn(move || {
            assert_eq!(sender.try_send(7), Ok(()));
            sender
        });
        assert_eq!(receiver.recv(), Ok(7));
        drop(sends.join().unwrap());
    });
}

/// Finds: a message that is given to a receiver after its deadline, or that is lost.
#[test]
fn a_message_that_comes_with_the_deadline_is_received_or_stays() {
    check_bounded(3, || {
        let (sender, receiver) = channel(Some(1));
        let sends = thread::spawn(move || {
            assert_eq!(sender.try_send(7), Ok(()));
            sender
        });
        let given = receiver.recv_deadline(over()).ok();
        let sender = sends.join().unwrap();
        assert_eq!(given.or_else(|| receiver.try_recv().ok()), Some(7));
        assert!(receiver.try_recv().is_err());
        drop(sender);
    });
}

/// Finds: a message that is taken from a sender that keeps it as well, when its time runs out at a rendezvous.
#[test]
fn a_sender_at_its_deadline_has_sent_or_keeps_its_message() {
    check_bounded(3, || times_out_with(0, vec![7]));
}

/// Finds: a message that is sent and kept as well, when room comes free with the deadline.
#[test]
fn a_sender_at_its_deadline_has_room_or_keeps_its_message() {
    check_bounded(3, || times_out_with(1, vec![6, 7]));
}

fn times_out_with(capacity: usize, messages: Vec<u32>) {
    let (sender, receiver) = channel(Some(capacity));
    (0..capacity).for_each(|_| sender.try_send(6).unwrap());
    let receives = thread::spawn(move || {
        let received = receiver.try_recv().ok();
        (receiver, received)
    });
    let kept = sender.send_deadline(7, over()).err().map(|refused| refused.into_inner());
    let (receiver, received) = receives.join().unwrap();
    let all: Vec<_> = received.into_iter().chain(receiver.try_recv()).chain(kept).collect();
    assert_eq!(all, messages);
}

/// Finds: a message that comes as its future is dropped, and of which the next future is not notified.
#[test]
fn a_future_that_leaves_passes_its_notification_on() {
    check_bounded(3, || {
        let (sender, receiver) = channel(Some(1));
        let polls = Arc::new(Tickets::new());
        let waker = Waker::from(Arc::clone(&polls));
        let mut context = Context::from_waker(&waker);
        let mut leaves = Box::pin(receiver.recv_async());
        assert!(leaves.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let mut next = Box::pin(receiver.recv_async());
        assert!(next.as_mut().poll(&mut context).is_pending());
        let sends = thread::spawn(move || {
            assert_eq!(sender.try_send(7), Ok(()));
            sender
        });
        drop(leaves);
        polls.take();
        assert_eq!(next.as_mut().poll(&mut context), Poll::Ready(Ok(7)));
        drop(sends.join().unwrap());
    });
}
