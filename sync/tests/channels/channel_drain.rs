//! All messages at once, and one in place of another.

use std::sync::Arc;

use crate::channels::{KEEPING, KINDS, LIMITED, Tally, Value, anywhere, make, ms};
use crate::common::{everywhere, until};
use fibra_runtime::block_on;
use fibra_sync::channel::{TrySendError, after, bounded, never};

#[test]
fn a_drain_takes_what_is_there_and_drops_what_is_left() {
    everywhere(|| {
        for kind in KEEPING {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            for _ in 0..3 {
                let count = kind.unwrap_or(100);
                (0..count).for_each(|_| sender.try_send(tally.value()).unwrap());
                let mut drained = receiver.drain();
                assert_eq!((drained.len(), receiver.len(), sender.is_empty()), (count, 0, true));
                drained.next().unwrap().receive();
                sender.try_send(tally.value()).unwrap();
                drop(drained);
                assert_eq!((tally.alive(), receiver.drain().map(Value::receive).count()), (1, 1));
            }
            assert_eq!(receiver.drain().count(), 0);
            tally.assert_settled();
        }
    });
}

#[test]
fn a_drain_gives_the_room_to_the_senders_that_wait() {
    anywhere(|other| {
        for capacity in LIMITED.into_iter().filter(|capacity| *capacity > 0) {
            let (sender, receiver) = bounded(capacity);
            (0..capacity).for_each(|number| sender.send(number).unwrap());
            let sending = other.starts_many(3, |_| {
                let sender = sender.clone();
                move || sender.send(100)
            });
            let mut received: Vec<_> = receiver.drain().collect();
            while received.len() < capacity + 3 {
                received.extend(receiver.recv());
                received.extend(receiver.drain());
            }
            assert!(received.into_iter().eq((0..capacity).chain([100; 3])));
            sending.into_iter().for_each(|side| side.join().unwrap());
            assert_eq!((receiver.len(), sender.is_full()), (0, false));
        }
    });
}

#[test]
fn a_drain_of_a_timer_has_its_message_once() {
    let receiver = after(ms(1));
    until(|| receiver.is_full());
    assert_eq!((receiver.drain().len(), receiver.drain().len()), (1, 0));
    assert_eq!(never::<i32>().drain().count(), 0);
}

#[test]
fn a_forced_send_replaces_the_oldest_message_of_a_full_channel() {
    everywhere(|| {
        for kind in KEEPING {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            let count = kind.unwrap_or(100);
            (0..count).for_each(|_| assert!(matches!(sender.force_send(tally.value()), Ok(None))));
            let replaced = sender.force_send(tally.value()).unwrap();
            assert_eq!(replaced.map(Value::take_back), kind.map(|_| 0));
            let first = usize::from(kind.is_some());
            assert!(receiver.try_iter().map(Value::receive).eq(first..=count));
            drop(receiver);
            let refused = sender.force_send(tally.value());
            assert_eq!(refused.unwrap_err().into_inner().take_back(), count + 1);
            tally.assert_settled();
        }
    });
}

#[test]
fn a_forced_send_fails_where_there_is_nothing_to_replace() {
    everywhere(|| {
        let (sender, receiver) = bounded(0);
        assert_eq!(sender.force_send(1), Err(TrySendError::Full(1)));
        drop(receiver);
        let (sender, _receiver) = bounded(1);
        let permit = sender.reserve().unwrap();
        assert_eq!(sender.force_send(1), Err(TrySendError::Full(1)));
        permit.send(2).unwrap();
        assert_eq!(sender.force_send(3), Ok(Some(2)));
    });
}

#[test]
fn a_forced_send_serves_a_receiver_that_waits() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let sender = Arc::new(sender);
            for by_future in [false, true] {
                let receiver = receiver.clone();
                let receiving = other.runs(move || match by_future {
                    true => block_on(receiver.recv_async()),
                    false => receiver.recv(),
                });
                // At a rendezvous it has to wait for the receiver.
                until(|| sender.force_send(7) == Ok(None));
                assert_eq!(receiving.join(), Ok(7));
            }
        }
    });
}

#[test]
fn a_forced_send_overtakes_senders_and_keeps_the_length() {
    anywhere(|other| {
        let (sender, receiver) = bounded(1);
        sender.send(1).unwrap();
        let waiting = {
            let sender = sender.clone();
            other.runs(move || sender.send(3))
        };
        assert_eq!((sender.force_send(2), sender.len()), (Ok(Some(1)), 1));
        assert_eq!((receiver.recv(), receiver.recv()), (Ok(2), Ok(3)));
        waiting.join().unwrap();
    });
}
