//! What a channel without a bound promises of its own.

use std::sync::Arc;

use crate::channels::{Tally, anywhere, join_all, ms};
use crate::common::everywhere;
use fibra_sync::channel::{
    RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError, unbounded,
};

#[test]
fn it_keeps_values_without_a_receiver() {
    everywhere(|| {
        let (sender, receiver) = unbounded();
        sender.try_send(7).unwrap();
        assert_eq!(receiver.try_recv(), Ok(7));
        sender.send(8).unwrap();
        assert_eq!(receiver.recv(), Ok(8));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(receiver.recv_timeout(ms(5)), Err(RecvTimeoutError::Timeout));
    });
}

#[test]
fn it_has_no_capacity_and_is_never_full() {
    let (sender, receiver) = unbounded();
    assert_eq!((sender.capacity(), receiver.capacity()), (None, None));
    for len in 0..1000 {
        assert_eq!((sender.len(), receiver.len()), (len, len));
        assert_eq!((sender.is_empty(), receiver.is_empty()), (len == 0, len == 0));
        assert!(!sender.is_full() && !receiver.is_full());
        sender.send(()).unwrap();
    }
    for len in (0..1000).rev() {
        receiver.recv().unwrap();
        assert_eq!((sender.len(), receiver.len()), (len, len));
    }
}

#[test]
fn a_send_never_waits() {
    everywhere(|| {
        let (sender, receiver) = unbounded();
        for number in 0..1000 {
            match number % 3 {
                0 => sender.send(number).unwrap(),
                1 => sender.try_send(number).unwrap(),
                _ => sender.send_timeout(number, ms(0)).unwrap(),
            }
        }
        drop(receiver);
        assert_eq!(sender.send(7), Err(SendError(7)));
        assert_eq!(sender.try_send(7), Err(TrySendError::Disconnected(7)));
        assert_eq!(sender.send_timeout(7, ms(5)), Err(SendTimeoutError::Disconnected(7)));
    });
}

#[test]
fn it_grows_and_shrinks_in_order() {
    everywhere(|| {
        let (sender, receiver) = unbounded();
        let (mut sent, mut received) = (0, 0);
        // Every length of a block is met at every place in it.
        for length in (0..70).chain((0..70).rev()) {
            (0..length).for_each(|_| sender.send(sent + 1).map(|()| sent += 1).unwrap());
            (0..length / 2).for_each(|_| assert_eq!(receiver.recv().map(|got| received = got), Ok(())));
            assert_eq!(receiver.len(), sent - received);
        }
        assert!(receiver.try_iter().eq(received + 1..=sent));
    });
}

#[test]
fn its_first_send_may_be_made_by_many_at_once() {
    anywhere(|other| {
        for _ in 0..50 {
            let (sender, receiver) = unbounded();
            let sending = other.starts_many(4, |number| {
                let sender = sender.clone();
                move || sender.send(number).unwrap()
            });
            let mut received: Vec<_> = (0..4).map(|_| receiver.recv().unwrap()).collect();
            received.sort_unstable();
            assert_eq!(received, [0, 1, 2, 3]);
            join_all(sending);
        }
    });
}

#[test]
fn messages_left_in_it_are_dropped_with_the_last_end() {
    everywhere(|| {
        for length in [0, 1, 30, 31, 32, 33, 62, 63, 64, 1000] {
            for taken in [0, length / 2, length] {
                let tally = Tally::new();
                let (sender, receiver) = unbounded();
                (0..length).for_each(|_| sender.send(tally.value()).unwrap());
                (0..taken).for_each(|number| assert_eq!(receiver.recv().unwrap().receive(), number));
                drop(sender);
                assert_eq!(tally.alive(), length - taken);
                drop(receiver);
                assert_eq!(tally.dropped(), length - taken);
            }
        }
    });
}

#[test]
fn many_send_while_it_is_dropped_and_nothing_leaks() {
    anywhere(|other| {
        for _ in 0..20 {
            let tally = Tally::new();
            let (sender, receiver) = unbounded();
            let sending = other.starts_many(4, |_| {
                let (sender, tally) = (sender.clone(), Arc::clone(&tally));
                move || {
                    while let Ok(()) = sender.send(tally.value()) {
                        crate::common::give_way();
                    }
                }
            });
            receiver.iter().take(50).for_each(|value| assert!(value.receive() < tally.made()));
            drop(receiver);
            join_all(sending);
            assert_eq!(tally.alive(), 0, "what came after the end was given back or dropped");
            assert_eq!(tally.received(), 50);
        }
    });
}
