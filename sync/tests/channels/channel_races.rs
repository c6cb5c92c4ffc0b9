//! Sends and receives whose time runs out at the moment they are served: every value is accounted for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::channels::{KINDS, LIMITED, Other, Tally, Value, anywhere, join_all, make, sleep, us};
use crate::common::{everywhere, give_way, until};
use fibra_sync::channel::{RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError, bounded};

/// Times around the one that a round takes, so that some run out before, some after and some at the same time.
fn around(round: usize) -> Duration {
    Duration::from_nanos((round as u64 * 7919) % 40_000)
}

#[test]
fn a_receive_that_is_served_as_its_time_runs_out_loses_nothing() {
    const VALUES: usize = 400;
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let sending = other.runs(move || {
                for number in 0..VALUES {
                    sender.send(number).unwrap();
                    number.is_multiple_of(4).then(give_way);
                }
            });
            let (mut expected, mut round) = (0, 0);
            loop {
                round += 1;
                match receiver.recv_timeout(around(round)) {
                    Ok(number) => assert_eq!(number, std::mem::replace(&mut expected, number + 1)),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            assert_eq!(expected, VALUES, "{kind:?}");
            sending.join();
        }
    });
}

#[test]
fn a_send_that_is_served_as_its_time_runs_out_sends_once_or_gives_the_value_back() {
    const TRIES: usize = 400;
    anywhere(|other| {
        for capacity in LIMITED {
            let tally = Tally::new();
            let (sender, receiver) = bounded::<Value>(capacity);
            let receiving = other.runs(move || {
                let mut last = None;
                for value in &receiver {
                    let number = value.receive();
                    assert!(last < Some(number), "in order, and none twice");
                    last = Some(number);
                    number.is_multiple_of(3).then(give_way);
                }
            });
            let mut sent = 0;
            for round in 0..TRIES {
                match sender.send_timeout(tally.value(), around(round)) {
                    Ok(()) => sent += 1,
                    Err(SendTimeoutError::Timeout(value)) => assert_eq!(value.take_back(), round),
                    Err(SendTimeoutError::Disconnected(_)) => panic!("the receiver is there"),
                }
            }
            drop(sender);
            receiving.join();
            assert_eq!((tally.received(), tally.returned()), (sent, TRIES - sent), "capacity {capacity}");
            tally.assert_settled();
        }
    });
}

#[test]
fn both_sides_time_out_at_once_over_and_over() {
    const EACH: usize = 250;
    anywhere(|other| {
        for capacity in LIMITED {
            let tally = Tally::new();
            let (sender, receiver) = bounded::<Value>(capacity);
            let sending = other.starts_many(3, |name| {
                let (sender, tally) = (sender.clone(), Arc::clone(&tally));
                move || {
                    let sends = |round| match sender.send_timeout(tally.value(), around(round + name)) {
                        Ok(()) => 1,
                        Err(error) => {
                            error.into_inner().take_back();
                            0
                        }
                    };
                    (0..EACH).map(sends).sum::<usize>()
                }
            });
            drop(sender);
            let receiving = other.starts_many(3, |name| {
                let receiver = receiver.clone();
                move || {
                    for round in 0.. {
                        match receiver.recv_timeout(around(round + name)) {
                            Ok(value) => _ = value.receive(),
                            Err(RecvTimeoutError::Timeout) => {}
                            Err(RecvTimeoutError::Disconnected) => break,
                        }
                    }
                }
            });
            let sent: usize = join_all(sending).into_iter().sum();
            join_all(receiving);
            assert_eq!((tally.received(), tally.received() + tally.returned()), (sent, 3 * EACH));
            tally.assert_settled();
        }
    });
}

#[test]
fn one_value_for_many_receivers_at_their_deadline_is_received_once_or_left() {
    anywhere(|other| {
        for kind in [Some(1), None] {
            for round in 0..40 {
                let (sender, receiver) = make(kind);
                let waiting = other.starts_many(4, |number| {
                    let receiver = receiver.clone();
                    move || receiver.recv_timeout(us(50) + around(round + number)).is_ok()
                });
                let sending = other.runs(move || {
                    sleep(us(60) + around(round));
                    sender.send(7).unwrap();
                    sender
                });
                let received = join_all(waiting).into_iter().filter(|&received| received).count();
                drop(sending.join());
                assert_eq!(received + receiver.try_iter().count(), 1);
            }
        }
    });
}

#[test]
fn senders_and_receivers_that_only_try_lose_nothing() {
    const EACH: usize = 200;
    anywhere(|other| {
        for kind in [Some(1), Some(5), None] {
            let (sender, receiver) = make::<usize>(kind);
            let sending = other.starts_many(3, |_| {
                let sender = sender.clone();
                move || {
                    for number in 0..EACH {
                        let mut kept = number;
                        while let Err(TrySendError::Full(back)) = sender.try_send(kept) {
                            kept = back;
                            give_way();
                        }
                    }
                }
            });
            drop(sender);
            let receiving = other.starts_many(3, |_| {
                let receiver = receiver.clone();
                move || {
                    let mut sum = 0;
                    loop {
                        match receiver.try_recv() {
                            Ok(number) => sum += number,
                            Err(TryRecvError::Empty) => give_way(),
                            Err(TryRecvError::Disconnected) => break sum,
                        }
                    }
                }
            });
            join_all(sending);
            assert_eq!(join_all(receiving).into_iter().sum::<usize>(), 3 * EACH * (EACH - 1) / 2);
        }
    });
}

#[test]
fn many_waiters_come_and_go_at_a_rendezvous_and_none_is_left() {
    anywhere(|other| {
        for _ in 0..10 {
            let (sender, receiver) = bounded::<usize>(0);
            let tasks = other.starts_many(30, |number| {
                let (sender, receiver) = (sender.clone(), receiver.clone());
                move || match number % 2 {
                    0 => usize::from(sender.send_timeout(number, us(300)).is_ok()),
                    _ => usize::from(receiver.recv_timeout(us(300)).is_ok()) << 16,
                }
            });
            let met: usize = join_all(tasks).into_iter().sum();
            assert_eq!(met >> 16, met & 0xffff, "as many sent as received");
        }
    });
}

#[test]
fn every_other_waiter_gives_up_and_the_rest_are_served() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make::<usize>(kind);
            let waiting = Other::Alike.starts_many(20, |number| {
                let receiver = receiver.clone();
                move || match number % 2 {
                    0 => receiver.recv_timeout(us(100)).is_ok(),
                    _ => receiver.recv().is_ok(),
                }
            });
            let sent = Arc::new(AtomicUsize::new(0));
            let sending = Other::Alike.runs({
                let sent = Arc::clone(&sent);
                move || {
                    while sender.send(0).is_ok() {
                        sent.fetch_add(1, Ordering::SeqCst);
                        give_way();
                    }
                }
            });
            let received = join_all(waiting);
            assert!(received.chunks(2).all(|pair| pair[1]));
            until(|| sent.load(Ordering::SeqCst) > 0);
            drop(receiver);
            sending.join();
        }
    });
}
