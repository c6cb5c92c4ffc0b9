//! What the iterators of a receiver promise.

use crate::channels::{KEEPING, KINDS, anywhere, join_all, make};
use crate::common::everywhere;
use fibra_sync::channel::unbounded;

#[test]
fn iter_gives_all_until_the_last_sender_is_gone() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let adding = other.runs(move || receiver.iter().sum::<i32>());
            [3, 1, 2].into_iter().for_each(|number| sender.send(number).unwrap());
            drop(sender);
            assert_eq!(adding.join(), 6);
        }
    });
}

#[test]
fn iter_leaves_what_it_was_not_asked_for() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let sending = other.runs(move || (0..5).filter(|&number| sender.send(number).is_ok()).count());
            assert!(receiver.iter().take(2).eq([0, 1]));
            assert_eq!(receiver.recv(), Ok(2));
            assert!(receiver.iter().eq([3, 4]));
            assert_eq!(sending.join(), 5);
        }
    });
}

#[test]
fn iter_stays_ended() {
    everywhere(|| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            sender.send(1).unwrap();
            drop(sender);
            let mut iter = receiver.iter();
            assert_eq!([iter.next(), iter.next(), iter.next()], [Some(1), None, None]);
        }
    });
}

#[test]
fn try_iter_gives_what_is_there_and_does_not_wait() {
    everywhere(|| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            assert_eq!(receiver.try_iter().next(), None);
            sender.send(1).unwrap();
            let mut iter = receiver.try_iter();
            assert_eq!([iter.next(), iter.next()], [Some(1), None]);
            sender.send(2).unwrap();
            assert_eq!(iter.next(), Some(2), "it goes on when there is more");
            drop(sender);
            assert_eq!(iter.next(), None);
        }
    });
}

#[test]
fn try_iter_meets_the_senders_of_a_rendezvous() {
    anywhere(|other| {
        let (sender, receiver) = make(Some(0));
        let sending = other.starts_many(5, |number| {
            let sender = sender.clone();
            move || sender.send(number).unwrap()
        });
        let mut received = Vec::new();
        while received.len() < 5 {
            received.extend(receiver.try_iter());
            crate::common::give_way();
        }
        received.sort_unstable();
        assert_eq!(received, [0, 1, 2, 3, 4]);
        join_all(sending);
    });
}

#[test]
fn into_iter_owns_or_borrows_the_receiver() {
    everywhere(|| {
        let (sender, receiver) = unbounded();
        let again = sender.clone();
        [1, 2].into_iter().for_each(|number| sender.send(number).unwrap());
        drop(sender);
        let mut borrowing = (&receiver).into_iter();
        assert_eq!([borrowing.next(), borrowing.next()], [Some(1), Some(2)]);
        again.send(3).unwrap();
        let mut owning = receiver.into_iter();
        assert_eq!(owning.next(), Some(3));
        drop(owning);
        assert!(again.send(4).is_err(), "the iterator was the last receiver");
    });
}

#[test]
fn several_iterators_share_the_values() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<usize>(kind);
            let adding = other.starts_many(4, |_| {
                let receiver = receiver.clone();
                move || receiver.into_iter().sum::<usize>()
            });
            (0..100).for_each(|number| sender.send(number).unwrap());
            drop(sender);
            assert_eq!(join_all(adding).into_iter().sum::<usize>(), 4950);
        }
    });
}
