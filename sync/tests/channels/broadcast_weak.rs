//! The promises of the weak senders of `broadcast`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{beside, everywhere, give_way, meet, pause};
use fibra_sync::broadcast::error::{RecvError, SendError};
use fibra_sync::broadcast::{WeakSender, channel};

#[test]
fn the_counts_are_those_of_the_handles() {
    let (sender, receiver) = channel::<u32>(1);
    let counts = || (receiver.sender_strong_count(), receiver.sender_weak_count());
    assert_eq!(counts(), (1, 0));
    let weak = sender.downgrade();
    let other = weak.clone();
    assert_eq!(counts(), (1, 2));
    let upgraded = weak.upgrade().unwrap();
    assert!(upgraded.same_channel(&sender));
    let clone = upgraded.clone();
    assert_eq!(counts(), (3, 2));
    assert_eq!((clone.strong_count(), clone.weak_count()), counts());
    assert_eq!((weak.strong_count(), weak.weak_count()), counts());
    drop((sender, other));
    assert_eq!(counts(), (2, 1));
    drop((upgraded, clone));
    assert_eq!(counts(), (0, 1));
    assert!(weak.upgrade().is_none());
    assert_eq!(counts(), (0, 1));
    drop(weak);
    assert_eq!(counts(), (0, 0));
}

#[test]
fn a_weak_sender_keeps_no_channel_open() {
    everywhere(|| {
        let (sender, mut receiver) = channel::<u32>(4);
        let weak = sender.downgrade();
        let receiving = beside(move || (receiver.recv(), receiver.is_closed()));
        pause();
        drop(sender);
        assert_eq!(receiving.join(), (Err(RecvError::Closed), true));
        assert!(weak.upgrade().is_none() && weak.clone().upgrade().is_none());
    });
}

#[test]
fn an_upgraded_sender_keeps_the_channel_open() {
    everywhere(|| {
        let (sender, mut receiver) = channel(4);
        let weak = sender.downgrade();
        let upgraded = weak.upgrade().unwrap();
        drop((sender, weak));
        let receiving = beside(move || (receiver.recv(), receiver.recv()));
        pause();
        assert_eq!(upgraded.send(1), Ok(1));
        drop(upgraded);
        assert_eq!(receiving.join(), (Ok(1), Err(RecvError::Closed)));
    });
}

#[test]
fn a_channel_that_is_closed_stays_closed() {
    let (sender, receiver) = channel::<u32>(4);
    let weak = sender.downgrade();
    drop(sender);
    assert!(weak.upgrade().is_none());
    let mut late = receiver.resubscribe();
    assert_eq!(late.recv(), Err(RecvError::Closed));
    assert!(weak.upgrade().is_none() && late.is_closed());
}

#[test]
fn a_weak_sender_keeps_no_message() {
    let message = Arc::new(());
    let (sender, receiver) = channel(4);
    let weak = sender.downgrade();
    sender.send(Arc::clone(&message)).unwrap();
    drop(sender);
    assert_eq!(Arc::strong_count(&message), 2);
    drop(receiver);
    assert_eq!(Arc::strong_count(&message), 1);
    drop(weak);
}

#[test]
fn a_weak_sender_keeps_no_sender_from_seeing_the_receivers_end() {
    let (sender, receiver) = channel::<u32>(4);
    let weak = sender.downgrade();
    drop(receiver);
    let upgraded = weak.upgrade().unwrap();
    assert!(upgraded.closed_timeout(Duration::ZERO));
    assert_eq!(upgraded.send(1), Err(SendError(1)));
    assert_eq!(format!("{weak:?}"), "WeakSender { senders: 2, .. }");
}

#[test]
fn upgraded_and_dropped_at_once_has_one_outcome() {
    const ROUNDS: usize = 10_000;
    const TOGETHER: usize = 8;
    everywhere(|| {
        let (mut senders, mut weaks, mut receivers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (sender, receiver) = channel(1);
            weaks.push(sender.downgrade());
            senders.push(sender);
            receivers.push(receiver);
        }
        let came = Arc::new(AtomicUsize::new(0));
        let dropping = {
            let came = Arc::clone(&came);
            beside(move || {
                for (round, sender) in senders.into_iter().enumerate() {
                    match round % TOGETHER {
                        0 => meet(&came, round / TOGETHER),
                        _ if round % 7 == 0 => give_way(),
                        _ => {}
                    }
                    drop(sender);
                }
            })
        };
        let upgrading = beside(move || {
            let upgrade = |(round, weak): (usize, WeakSender<usize>)| {
                match round % TOGETHER {
                    0 => meet(&came, round / TOGETHER),
                    _ if round % 5 == 0 => give_way(),
                    _ => {}
                }
                let upgraded = weak.upgrade().map(|sender| assert_eq!(sender.send(round), Ok(1)));
                (upgraded.is_some(), weak)
            };
            weaks.into_iter().enumerate().map(upgrade).collect::<Vec<_>>()
        });
        let received: Vec<_> = receivers
            .iter_mut()
            .map(|receiver| {
                let received = receiver.recv();
                if received.is_ok() {
                    assert_eq!(receiver.recv(), Err(RecvError::Closed));
                }
                assert!(receiver.is_closed());
                received
            })
            .collect();
        dropping.join();
        for (round, ((upgraded, weak), received)) in upgrading.join().into_iter().zip(received).enumerate() {
            assert_eq!(received, if upgraded { Ok(round) } else { Err(RecvError::Closed) });
            assert!(weak.upgrade().is_none());
            assert_eq!((weak.strong_count(), weak.weak_count()), (0, 1));
        }
    });
}

#[test]
fn after_a_failed_upgrade_there_is_never_a_sender_again() {
    const ROUNDS: usize = 300;
    const SIDES: usize = 3;
    everywhere(|| {
        for round in 0..ROUNDS {
            let (sender, mut receiver) = channel(1 << 12);
            let closed = Arc::new(AtomicBool::new(false));
            let sides: Vec<_> = (0..SIDES)
                .map(|_| {
                    let (weak, closed) = (sender.downgrade(), Arc::clone(&closed));
                    beside(move || {
                        let mut sent = 0;
                        loop {
                            let was_closed = closed.load(Ordering::SeqCst);
                            let Some(sender) = weak.upgrade() else { break };
                            assert!(!was_closed, "a sender of a closed channel");
                            if sent < 1000 {
                                assert_eq!(sender.send(()), Ok(1));
                                sent += 1;
                            }
                            drop(sender);
                            give_way();
                        }
                        closed.store(true, Ordering::SeqCst);
                        assert_eq!(weak.strong_count(), 0);
                        sent
                    })
                })
                .collect();
            (0..round % 5).for_each(|_| give_way());
            drop(sender);
            let mut received = 0;
            while receiver.recv().is_ok() {
                received += 1;
            }
            assert_eq!(receiver.recv(), Err(RecvError::Closed));
            assert_eq!(sides.into_iter().map(|side| side.join()).sum::<usize>(), received);
            assert_eq!((receiver.sender_strong_count(), receiver.sender_weak_count()), (0, 0));
        }
    });
}
