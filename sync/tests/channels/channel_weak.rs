//! Weak ends, and counts of ends.

use std::sync::Arc;

use crate::channels::{KINDS, anywhere, join_all, make, ms};
use crate::common::{everywhere, give_way};
use fibra_sync::channel::{RecvError, SendError, after, never};

#[test]
fn a_weak_sender_keeps_no_channel_open() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make::<i32>(kind);
            let weak = sender.downgrade();
            let upgraded = weak.upgrade().unwrap();
            assert!(upgraded.same_channel(&sender));
            assert_eq!((sender.sender_count(), receiver.sender_count()), (2, 2));
            drop((sender, upgraded));
            assert!(weak.upgrade().is_none() && weak.clone().upgrade().is_none());
            assert_eq!((receiver.recv(), receiver.sender_count()), (Err(RecvError), 0));
        }
    });
}

#[test]
fn a_weak_receiver_keeps_no_channel_open() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let message = Arc::new(());
            _ = sender.try_send(Arc::clone(&message));
            let weak = receiver.downgrade();
            let upgraded = weak.upgrade().unwrap();
            assert!(upgraded.same_channel(&receiver));
            assert_eq!((sender.receiver_count(), receiver.receiver_count()), (2, 2));
            drop((receiver, upgraded));
            assert_eq!(Arc::strong_count(&message), 1, "it keeps no message");
            assert!(weak.upgrade().is_none() && weak.clone().upgrade().is_none());
            assert!(sender.send(message).is_err() && sender.receiver_count() == 0);
        }
    });
}

#[test]
fn an_upgrade_beside_the_end_comes_before_or_after_it() {
    anywhere(|other| {
        for _ in 0..200 {
            let (sender, receiver) = make(None);
            let weak = sender.downgrade();
            let ends = other.runs(move || drop(sender));
            let sent = weak.upgrade().is_some_and(|sender| sender.send(1).is_ok());
            ends.join();
            assert_eq!((receiver.recv() == Ok(1), receiver.recv()), (sent, Err(RecvError)));

            let (sender, receiver) = make(None);
            let weak = receiver.downgrade();
            let ends = other.runs(move || drop(receiver));
            drop(weak.upgrade());
            ends.join();
            assert!(weak.upgrade().is_none());
            assert_eq!(sender.send(1), Err(SendError(1)));
        }
    });
}

#[test]
fn clones_are_counted() {
    anywhere(|other| {
        let (sender, receiver) = make::<i32>(Some(1));
        let holding = other.starts_many(4, |_| {
            let ends = (sender.clone(), receiver.clone());
            move || {
                give_way();
                drop(ends);
            }
        });
        assert!((1..=5).contains(&sender.sender_count()) && (1..=5).contains(&sender.receiver_count()));
        join_all(holding);
        assert_eq!((receiver.sender_count(), receiver.receiver_count()), (1, 1));
    });
}

#[test]
fn the_clock_and_never_count_no_senders() {
    for receiver in [after(ms(1)), never()] {
        assert_eq!((receiver.sender_count(), receiver.receiver_count()), (0, 1));
        assert!(receiver.downgrade().upgrade().is_some());
    }
    assert!(after(ms(1)).downgrade().upgrade().unwrap().recv().is_ok());
}
