//! What becomes of the messages that a receiver of a `broadcast` is too slow for, or comes too late for.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::common::everywhere;
use crate::future::{Woken, block_on, poll};
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

#[test]
fn a_receiver_that_is_late_by_no_more_than_is_kept_loses_nothing() {
    everywhere(|| {
        let (sender, mut slow) = channel(2);
        let mut fast = sender.subscribe();
        for message in [1, 2] {
            sender.send(message).unwrap();
            assert_eq!(fast.recv(), Ok(message));
        }
        drop(sender);
        assert_eq!((slow.try_recv(), slow.try_recv()), (Ok(1), Ok(2)));
        assert_eq!(
            (slow.try_recv(), fast.try_recv()),
            (Err(TryRecvError::Closed), Err(TryRecvError::Closed))
        );
    });
}

#[test]
fn each_lag_is_counted_from_the_end_of_the_one_before() {
    everywhere(|| {
        let (sender, mut receiver) = channel(2);
        let send = |messages: std::ops::RangeInclusive<i32>| {
            messages.for_each(|message| _ = sender.send(message).unwrap());
        };
        send(1..=3);
        assert_eq!(receiver.recv(), Err(RecvError::Lagged(1)));
        // Again before it has seen what was left to it, which was 2 and 3.
        send(4..=6);
        assert_eq!((receiver.len(), receiver.recv()), (5, Err(RecvError::Lagged(3))));
        assert_eq!((receiver.recv(), receiver.recv()), (Ok(5), Ok(6)));
        // And after it has caught up.
        send(7..=9);
        assert_eq!(receiver.recv(), Err(RecvError::Lagged(1)));
        assert_eq!((receiver.recv(), receiver.recv(), receiver.len()), (Ok(8), Ok(9), 0));
    });
}

#[test]
fn a_future_is_told_of_a_lag() {
    let (sender, mut receiver) = channel(2);
    let woken = Arc::<Woken>::default();
    {
        let mut receiving = pin!(receiver.recv_async());
        assert!(poll(receiving.as_mut(), &woken).is_pending());
        (1..=3).for_each(|message| _ = sender.send(message).unwrap());
        assert_eq!((woken.times(), poll(receiving, &woken)), (1, Poll::Ready(Err(RecvError::Lagged(1)))));
    }
    assert_eq!(block_on(receiver.recv_async()), Ok(2));
    assert_eq!(block_on(receiver.recv_async()), Ok(3));
}

#[test]
fn the_sender_counts_what_the_slowest_has_not_seen_and_is_kept() {
    const CAPACITY: usize = 16;
    let (sender, first) = channel(CAPACITY);
    let mut receivers = [sender.subscribe(), first];
    let mut chance = 1_u32;
    for _ in 0..2000 {
        // Marsaglia's xorshift.
        chance ^= chance << 13;
        chance ^= chance >> 17;
        chance ^= chance << 5;
        match chance as usize % 4 {
            one @ (0 | 1) => _ = receivers[one].try_recv(),
            _ => _ = sender.send(()).unwrap(),
        }
        let unseen = receivers.iter().map(|receiver| receiver.len()).max().unwrap();
        assert_eq!(sender.len(), unseen.min(CAPACITY));
    }
}
