//! What becomes of the messages that a receiver of a `broadcast` is too slow for, or comes too late for.

mod common;

use std::time::Duration;

use common::everywhere;
use fibra_sync::broadcast::channel;
use fibra_sync::broadcast::error::{RecvError, RecvTimeoutError, TryRecvError};

#[test]
fn a_lagging_receiver_is_told_how_much_it_lost() {
    everywhere(|| {
        let (sender, mut slow) = channel(2);
        let mut fast = sender.subscribe();
        for message in 0..2 {
            sender.send(message).unwrap();
            assert_eq!(fast.recv(), Ok(message));
        }
        assert_eq!(slow.len(), 2);
        sender.send(2).unwrap();
        sender.send(3).unwrap();
        assert_eq!(slow.len(), 4);
        assert_eq!(slow.recv(), Err(RecvError::Lagged(2)));
        assert_eq!(slow.len(), 2);
        assert_eq!(slow.try_recv(), Ok(2));
        sender.send(4).unwrap();
        sender.send(5).unwrap();
        assert_eq!(slow.try_recv(), Err(TryRecvError::Lagged(1)));
        assert_eq!((slow.recv(), slow.recv()), (Ok(4), Ok(5)));
        assert_eq!(fast.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Lagged(2)));
        assert_eq!((fast.recv(), fast.recv()), (Ok(4), Ok(5)));
        assert_eq!(slow.try_recv(), Err(TryRecvError::Empty));
    });
}

#[test]
fn the_capacity_is_rounded_up() {
    let (sender, mut receiver) = channel(5);
    (0..9).for_each(|message| _ = sender.send(message).unwrap());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!(receiver.try_recv(), Ok(1));
}

#[test]
fn one_slot_keeps_the_last() {
    let (sender, mut receiver) = channel(1);
    sender.send(1).unwrap();
    assert_eq!(receiver.recv(), Ok(1));
    sender.send(2).unwrap();
    sender.send(3).unwrap();
    drop(sender);
    assert_eq!(receiver.recv(), Err(RecvError::Lagged(1)));
    assert_eq!(receiver.recv(), Ok(3));
    assert_eq!(receiver.recv(), Err(RecvError::Closed));
}

#[test]
fn a_closed_channel_gives_what_it_keeps() {
    let (sender, mut receiver) = channel(2);
    (0..5).for_each(|message| _ = sender.send(message).unwrap());
    let mut late = receiver.resubscribe();
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(3)));
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(3), Ok(4)));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(late.recv(), Err(RecvError::Closed));
}
