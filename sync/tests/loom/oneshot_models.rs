//! The two sides of a oneshot channel, and which of them frees it.
//!
//! The model counts the end of an atomic as a write of it. So a channel that is freed too early is reported.

use std::sync::Arc;

use loom::thread;

use crate::oneshot::{self, Half, Side};
use crate::primitive::check_bounded;
use crate::wait::over;

/// Makes a channel whose atomics are in use.
fn pair<T>() -> (Half<T>, Half<T>) {
    let (sender, receiver) = oneshot::pair();
    assert!(!receiver.has_outcome() && !receiver.has_value());
    (sender, receiver)
}

/// Finds: a receiver that sleeps as the value comes and is not woken, or that frees the channel under the sender.
#[test]
fn a_value_is_received_once() {
    check_bounded(3, || {
        let (sender, receiver) = pair();
        let sending = thread::spawn(move || sender.send(7).unwrap());
        assert!(receiver.wait(Side::Receiver, None));
        assert_eq!(receiver.take_or(()), Ok(7));
        sending.join().unwrap();
    });
}

/// Finds: a sender that leaves without a value, and frees the channel together with the receiver or not at all.
#[test]
fn a_receiver_learns_that_no_value_comes() {
    check_bounded(3, || {
        let (sender, receiver) = pair::<u8>();
        let leaving = thread::spawn(move || sender.leave(Side::Sender).is_none());
        assert!(receiver.wait(Side::Receiver, None));
        assert_eq!(receiver.take_or(()), Err(()));
        assert!(leaving.join().unwrap());
    });
}

/// Finds: a value that both sides drop, or neither of them, as the receiver leaves.
#[test]
fn a_value_is_dropped_once_as_the_receiver_leaves() {
    check_bounded(3, || {
        let value = Arc::new(());
        let (sender, receiver) = pair();
        let sent = Arc::clone(&value);
        let sending = thread::spawn(move || sender.send(sent).is_ok());
        let taken = receiver.take_or(());
        assert_eq!(sending.join().unwrap(), taken.is_ok());
        drop(taken);
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

/// Finds: a receiver that gives up as the value comes, and loses it or frees the channel under the sender.
#[test]
fn a_late_value_is_kept_for_the_receiver() {
    check_bounded(3, || {
        let (sender, receiver) = pair();
        let sending = thread::spawn(move || sender.send(7).unwrap());
        if receiver.wait(Side::Receiver, Some(over())) {
            assert_eq!(receiver.take_or(()), Ok(7));
            sending.join().unwrap();
        } else {
            sending.join().unwrap();
            assert_eq!(receiver.take_or(()), Ok(7));
        }
    });
}
