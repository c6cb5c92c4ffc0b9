//! The promises of a select that waits for a oneshot, a broadcast or a watch.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{beside, everywhere, give_way, until};
use fibra_sync::channel::{self, Select};
use fibra_sync::{broadcast, oneshot, select, select_biased, watch};

const SHORT: Duration = Duration::from_millis(5);

#[test]
fn a_value_of_a_oneshot_ends_the_wait_and_is_left_to_the_case() {
    everywhere(|| {
        for early in [true, false] {
            let (sender, receiver) = oneshot::channel();
            select! {
                wait(receiver) => panic!("nothing was sent"),
                default => {}
            }
            select! {
                wait(receiver) => panic!("nothing was sent"),
                default(SHORT) => {}
            }
            let sending = beside(move || sender.send(7));
            if early {
                until(|| !receiver.is_empty());
            }
            select! {
                wait(receiver) => assert_eq!(receiver.recv(), Ok(7)),
                recv(channel::never::<()>()) -> _ => unreachable!(),
            }
            assert_eq!(sending.join(), Ok(()));
        }
    });
}

#[test]
fn the_end_of_a_sender_is_ready() {
    everywhere(|| {
        let (one, mut oneshot) = oneshot::channel::<i32>();
        let (all, mut broadcast) = broadcast::channel::<i32>(4);
        let (last, mut watch) = watch::channel(0);
        let ends = beside(move || {
            give_way();
            drop(one);
            give_way();
            drop(all);
            give_way();
            drop(last);
        });
        select! {
            wait(oneshot) => assert_eq!(oneshot.try_recv(), Err(oneshot::error::TryRecvError::Closed)),
            wait(broadcast) => assert_eq!(broadcast.try_recv(), Err(broadcast::error::TryRecvError::Closed)),
            wait(watch) => assert!(watch.changed().is_err()),
        }
        select! {
            wait(broadcast) => assert_eq!(broadcast.recv(), Err(broadcast::error::RecvError::Closed)),
            recv(channel::never::<()>()) -> _ => unreachable!(),
        }
        select! {
            wait(watch) => assert!(watch.changed().is_err()),
            recv(channel::never::<()>()) -> _ => unreachable!(),
        }
        ends.join();
        // Received or not, nothing will come.
        _ = oneshot.try_recv();
        select_biased! {
            wait(oneshot) => assert!(oneshot.is_terminated()),
            default => panic!("a receive would not wait"),
        }
    });
}

#[test]
fn a_case_that_was_not_chosen_has_received_nothing() {
    everywhere(|| {
        let (one, oneshot) = oneshot::channel();
        let (all, mut broadcast) = broadcast::channel(4);
        let (last, mut watch) = watch::channel(0);
        one.send(1).unwrap();
        all.send(2).unwrap();
        last.send(3).unwrap();
        let (sender, receiver) = channel::bounded(1);
        sender.send(4).unwrap();
        for _ in 0..20 {
            select_biased! {
                recv(receiver) -> message => sender.send(message.unwrap()).unwrap(),
                wait(oneshot) => unreachable!(),
                wait(broadcast) => unreachable!(),
                wait(watch) => unreachable!(),
            }
        }
        assert_eq!((oneshot.recv(), broadcast.recv()), (Ok(1), Ok(2)));
        assert!(watch.changed().is_ok() && *watch.borrow() == 3);
    });
}

#[test]
fn messages_and_changes_come_one_by_one_in_their_order() {
    everywhere(|| {
        let (all, mut broadcast) = broadcast::channel(128);
        let (last, mut watch) = watch::channel(0);
        let sending = beside(move || {
            for number in 1..=100 {
                all.send(number).unwrap();
                last.send(number).unwrap();
                (number % 7 == 0).then(give_way);
            }
        });
        let (mut messages, mut seen) = (0, 0);
        while messages < 100 || seen < 100 {
            select! {
                wait(broadcast) => match broadcast.recv() {
                    Ok(message) => {
                        messages += 1;
                        assert_eq!(message, messages);
                    }
                    Err(_) => assert_eq!(messages, 100),
                },
                wait(watch) => {
                    _ = watch.changed();
                    let now = *watch.borrow();
                    assert!(now >= seen);
                    seen = now;
                }
            }
        }
        sending.join();
    });
}

#[test]
fn a_dynamic_select_waits_for_them() {
    everywhere(|| {
        let (one, oneshot) = oneshot::channel();
        let (_all, broadcast) = broadcast::channel::<i32>(4);
        let (_last, watch) = watch::channel(0);
        let sending = beside(move || one.send(7));
        let mut select = Select::new();
        let index = select.wait(&oneshot);
        select.wait(&broadcast);
        select.wait(&watch);
        let operation = select.select();
        assert_eq!(operation.index(), index);
        operation.wait(&oneshot);
        assert_eq!(oneshot.recv(), Ok(7));
        sending.join().unwrap();
    });
}

#[test]
fn a_receiver_behind_a_pointer_is_waited_for() {
    let (sender, receiver) = oneshot::channel();
    let receiver = Arc::new(receiver);
    sender.send(7).unwrap();
    channel::select! {
        wait(receiver) => assert!(!receiver.is_empty()),
        default => panic!("it was sent"),
    }
    channel::select_biased! {
        wait(receiver) => {}
        default => panic!("it is still there"),
    }
}

#[test]
fn a_select_whose_time_is_over_leaves_the_value() {
    everywhere(|| {
        for _ in 0..50 {
            let (sender, receiver) = oneshot::channel();
            let sending = beside(move || {
                give_way();
                sender.send(7).unwrap();
            });
            select! {
                wait(receiver) => {}
                default(Duration::from_micros(1)) => {}
            }
            assert_eq!(receiver.recv(), Ok(7));
            sending.join();
        }
    });
}
