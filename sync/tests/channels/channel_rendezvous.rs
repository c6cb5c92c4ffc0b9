//! What a channel of capacity zero promises: a value changes hands when a sender and a receiver meet.

use std::time::Instant;

use crate::channels::{anywhere, join_all, ms};
use crate::common::{everywhere, give_way, pause};
use fibra_sync::channel::{
    RecvError, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError, bounded,
};
use fibra_sync::select;

#[test]
fn nothing_is_kept() {
    everywhere(|| {
        let (sender, receiver) = bounded(0);
        assert_eq!(sender.try_send(7), Err(TrySendError::Full(7)));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert_eq!((sender.capacity(), receiver.capacity()), (Some(0), Some(0)));
    });
}

#[test]
fn it_is_empty_and_full_whatever_waits() {
    anywhere(|other| {
        let (sender, receiver) = bounded::<usize>(0);
        let looks = |sender: &fibra_sync::channel::Sender<usize>| {
            assert_eq!((sender.len(), sender.is_empty(), sender.is_full()), (0, true, true));
            assert_eq!((receiver.len(), receiver.is_empty(), receiver.is_full()), (0, true, true));
        };
        looks(&sender);
        let waiting = sender.clone();
        let sending = other.runs(move || waiting.send(1).unwrap());
        pause();
        looks(&sender);
        assert_eq!(receiver.recv(), Ok(1));
        sending.join();
        looks(&sender);
    });
}

#[test]
fn try_recv_meets_a_sender_that_waits() {
    anywhere(|other| {
        let (sender, receiver) = bounded(0);
        let sending = other.runs(move || sender.send(7).unwrap());
        let received = std::iter::repeat_with(|| {
            give_way();
            receiver.try_recv()
        });
        assert_eq!({ received }.find(|result| *result != Err(TryRecvError::Empty)), Some(Ok(7)));
        sending.join();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn try_send_meets_a_receiver_that_waits() {
    anywhere(|other| {
        let (sender, receiver) = bounded(0);
        let receiving = other.runs(move || receiver.recv());
        while sender.try_send(8).is_err() {
            give_way();
        }
        assert_eq!(receiving.join(), Ok(8));
        assert_eq!(sender.try_send(9), Err(TrySendError::Disconnected(9)));
    });
}

#[test]
fn a_send_ends_no_sooner_than_its_receive_begins() {
    anywhere(|other| {
        let (sender, receiver) = bounded(0);
        let sending = other.runs(move || {
            (0..3).map(|number| sender.send(number).map(|()| Instant::now()).unwrap()).collect::<Vec<_>>()
        });
        let began = (0..3).map(|number| {
            pause();
            let begins = Instant::now();
            assert_eq!(receiver.recv(), Ok(number));
            begins
        });
        let began: Vec<_> = began.collect();
        assert!(sending.join().iter().zip(&began).all(|(sent, begins)| sent >= begins));
    });
}

#[test]
fn send_timeout_gives_an_unreceived_message_back() {
    anywhere(|other| {
        let (sender, receiver) = bounded(0);
        let start = Instant::now();
        assert_eq!(sender.send_timeout(7, ms(5)), Err(SendTimeoutError::Timeout(7)));
        assert_eq!(sender.send_deadline(7, start + ms(7)), Err(SendTimeoutError::Timeout(7)));
        assert!(start.elapsed() >= ms(7));
        let receiving = other.runs(move || receiver.recv());
        assert_eq!(sender.send_timeout(8, ms(60_000)), Ok(()));
        assert_eq!(receiving.join(), Ok(8));
        assert_eq!(sender.send_timeout(9, ms(60_000)), Err(SendTimeoutError::Disconnected(9)));
    });
}

#[test]
fn recv_timeout_waits_no_less_than_it_says() {
    anywhere(|other| {
        let (sender, receiver) = bounded(0);
        let start = Instant::now();
        assert_eq!(receiver.recv_timeout(ms(5)), Err(RecvTimeoutError::Timeout));
        assert_eq!(receiver.recv_deadline(start + ms(7)), Err(RecvTimeoutError::Timeout));
        assert!(start.elapsed() >= ms(7));
        let sending = other.runs(move || sender.send(7).unwrap());
        assert_eq!(receiver.recv_timeout(ms(60_000)), Ok(7));
        assert_eq!(receiver.recv_timeout(ms(60_000)), Err(RecvTimeoutError::Disconnected));
        sending.join();
    });
}

#[test]
fn a_deadline_that_is_over_ends_a_wait_under_way() {
    anywhere(|other| {
        let past = Instant::now();
        let (sender, receiver) = bounded(0);
        let (waiting, waits) = (sender.clone(), receiver.clone());
        let sending = other.runs(move || waiting.send(1).unwrap());
        while receiver.recv_deadline(past) != Ok(1) {
            give_way();
        }
        sending.join();
        let receiving = other.runs(move || waits.recv());
        while sender.send_deadline(2, past).is_err() {
            give_way();
        }
        assert_eq!(receiving.join(), Ok(2));
    });
}

#[test]
fn two_sides_that_only_try_never_meet() {
    anywhere(|other| {
        let (sender, receiver) = bounded(0);
        let trying = other.runs(move || {
            (0..200).for_each(|_| {
                assert_eq!(sender.try_send(()), Err(TrySendError::Full(())));
                give_way();
            });
            sender
        });
        (0..200).for_each(|_| {
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            give_way();
        });
        drop(trying.join());
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn a_message_may_be_received_from_the_channel_that_it_goes_into() {
    anywhere(|other| {
        let (sender, receiver) = bounded(0);
        let (chosen, choice) = bounded::<()>(1);
        let (one, another) = (receiver.clone(), sender.clone());
        let receiving = other.runs(move || one.recv().unwrap());
        let sending = other.runs(move || {
            choice.recv().unwrap();
            another.send(1).unwrap();
        });
        let message = || {
            chosen.send(()).unwrap();
            receiver.recv().unwrap() + 1
        };
        select! { send(sender, message()) -> sent => sent.unwrap() }
        assert_eq!(receiving.join(), 2);
        sending.join();
    });
}

#[test]
fn values_are_handed_along_a_chain() {
    anywhere(|other| {
        const LINKS: usize = 100;
        let (leftmost, end) = bounded(0);
        let mut left = leftmost;
        let mut links = Vec::new();
        for _ in 0..LINKS {
            let (next, right) = bounded::<usize>(0);
            links.push(other.runs(move || left.send(right.recv().unwrap() + 1).unwrap()));
            left = next;
        }
        left.send(1).unwrap();
        assert_eq!(end.recv(), Ok(LINKS + 1));
        join_all(links);
        assert_eq!(end.recv(), Err(RecvError));
    });
}

#[test]
fn values_keep_their_order_when_receivers_take_turns() {
    const TURNS: usize = 10;
    anywhere(|other| {
        let (sender, receiver) = bounded(0);
        let (start, mut turn) = bounded::<()>(0);
        let mut all = Vec::new();
        for number in 0..TURNS {
            let (next, after) = bounded(0);
            let (receiver, mine) = (receiver.clone(), turn);
            all.push(other.runs(move || {
                mine.recv().unwrap();
                assert_eq!(receiver.recv(), Ok(number));
                next.send(()).unwrap();
            }));
            turn = after;
        }
        start.send(()).unwrap();
        (0..TURNS).for_each(|number| sender.send(number).unwrap());
        turn.recv().unwrap();
        join_all(all);
    });
}
