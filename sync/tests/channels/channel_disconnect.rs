//! What happens when all senders or all receivers are gone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::channels::{KEEPING, KINDS, LIMITED, Tally, anywhere, join_all, make, ms};
use crate::common::{everywhere, give_way, pause, until};
use fibra_sync::channel::{
    Receiver, RecvError, RecvTimeoutError, Select, SendError, SendTimeoutError, Sender, TryRecvError,
    TrySendError, bounded, never,
};
use fibra_sync::select;

#[test]
fn a_send_fails_when_the_last_receiver_is_gone() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let clone = receiver.clone();
            drop(receiver);
            kind.is_none_or(|capacity| capacity > 0).then(|| sender.try_send(0).unwrap());
            drop(clone);
            assert_eq!(sender.send(1), Err(SendError(1)));
            assert_eq!(sender.try_send(2), Err(TrySendError::Disconnected(2)));
            assert_eq!(sender.send_timeout(3, ms(60_000)), Err(SendTimeoutError::Disconnected(3)));
            select! { send(sender, 4) -> sent => assert_eq!(sent, Err(SendError(4))) }
        }
    });
}

#[test]
fn a_receive_fails_when_the_last_sender_is_gone_and_all_is_taken() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let room = kind.unwrap_or(5);
            (0..room).for_each(|number| sender.send(number).unwrap());
            let clone = sender.clone();
            drop(sender);
            (0..room).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            drop(clone);
            assert_eq!(receiver.recv(), Err(RecvError));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
            assert_eq!(receiver.recv_timeout(ms(60_000)), Err(RecvTimeoutError::Disconnected));
            select! { recv(receiver) -> received => assert_eq!(received, Err(RecvError)) }
        }
    });
}

#[test]
fn the_first_and_second_clone_are_not_the_last() {
    everywhere(|| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            let senders: Vec<_> = (0..100).map(|_| sender.clone()).collect();
            let receivers: Vec<_> = (0..100).map(|_| receiver.clone()).collect();
            drop((sender, receiver));
            let (last, taker) = (senders[57].clone(), receivers[75].clone());
            drop((senders, receivers));
            last.send(1).unwrap();
            drop(last);
            assert_eq!((taker.recv(), taker.recv()), (Ok(1), Err(RecvError)));
        }
    });
}

#[test]
fn the_end_of_the_receivers_wakes_all_senders() {
    anywhere(|other| {
        for capacity in LIMITED {
            let (sender, receiver) = bounded(capacity);
            (0..capacity).for_each(|number| sender.send(number).unwrap());
            let waiting = other.starts_many(9, |number| {
                let sender = sender.clone();
                move || match number % 3 {
                    0 => sender.send(number) == Err(SendError(number)),
                    1 => {
                        sender.send_timeout(number, ms(60_000)) == Err(SendTimeoutError::Disconnected(number))
                    }
                    _ => select! { send(sender, number) -> sent => sent == Err(SendError(number)) },
                }
            });
            pause();
            drop(receiver);
            assert_eq!(join_all(waiting), [true; 9]);
        }
    });
}

#[test]
fn the_end_of_the_senders_wakes_all_receivers() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<()>(kind);
            let waiting = other.starts_many(9, |number| {
                let receiver = receiver.clone();
                move || match number % 3 {
                    0 => receiver.recv() == Err(RecvError),
                    1 => receiver.recv_timeout(ms(60_000)) == Err(RecvTimeoutError::Disconnected),
                    _ => select! { recv(receiver) -> received => received == Err(RecvError) },
                }
            });
            pause();
            drop(sender);
            assert_eq!(join_all(waiting), [true; 9]);
        }
    });
}

#[test]
fn an_end_that_comes_while_others_begin_to_wait_is_seen_by_all() {
    anywhere(|other| {
        for kind in KINDS {
            for _ in 0..20 {
                let (sender, receiver) = make::<()>(kind);
                let receiving = other.starts_many(3, |_| {
                    let receiver = receiver.clone();
                    move || assert_eq!(receiver.recv(), Err(RecvError))
                });
                drop((receiver, sender));
                join_all(receiving);
                let Some(capacity) = kind else { continue };
                let (sender, receiver) = bounded(capacity);
                (0..capacity).for_each(|_| sender.send(()).unwrap());
                let sending = other.starts_many(3, |_| {
                    let sender = sender.clone();
                    move || assert_eq!(sender.send(()), Err(SendError(())))
                });
                drop((sender, receiver));
                join_all(sending);
            }
        }
    });
}

#[test]
fn both_ends_may_go_at_once() {
    anywhere(|other| {
        for kind in KINDS {
            for round in 0..30 {
                let tally = Tally::new();
                let (sender, receiver) = make(kind);
                (0..kind.unwrap_or(3).min(round)).for_each(|_| sender.send(tally.value()).unwrap());
                let dropping = other.runs(move || drop(sender));
                drop(receiver);
                dropping.join();
                assert_eq!(tally.alive(), 0);
            }
        }
    });
}

#[test]
fn the_last_receiver_s_end_drops_what_is_buffered_at_once() {
    everywhere(|| {
        for kind in [Some(1), Some(5000), None] {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            let count = kind.unwrap_or(5000);
            (0..count).for_each(|_| sender.send(tally.value()).unwrap());
            drop(receiver);
            assert_eq!(tally.dropped(), count, "though a sender is left");
            assert_eq!((sender.len(), sender.is_empty()), (0, true));
            sender.send(tally.value()).unwrap_err().into_inner().take_back();
            drop(sender);
            tally.assert_settled();
        }
    });
}

#[test]
fn senders_send_while_the_last_receiver_goes_and_every_value_is_accounted_for() {
    anywhere(|other| {
        for kind in KINDS {
            for round in 0..10 {
                let tally = Tally::new();
                let (sender, receiver) = make(kind);
                let sending = other.starts_many(4, |_| {
                    let (sender, tally) = (sender.clone(), Arc::clone(&tally));
                    move || {
                        let mut sent = 0;
                        loop {
                            match sender.send(tally.value()) {
                                Ok(()) => sent += 1,
                                Err(SendError(value)) => {
                                    value.take_back();
                                    break sent;
                                }
                            }
                            give_way();
                        }
                    }
                });
                drop(sender);
                receiver.iter().take(round).for_each(|value| assert!(value.receive() < tally.made()));
                drop(receiver);
                let sent: usize = join_all(sending).into_iter().sum();
                assert_eq!((tally.received(), tally.returned(), tally.alive()), (round, 4, 0), "{kind:?}");
                assert_eq!(sent, tally.received() + tally.dropped());
            }
        }
    });
}

/// Panics in the drop of the value of this number.
struct Bomb(usize, Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
        if self.0 == 3 {
            std::panic::resume_unwind(Box::new("bomb"));
        }
    }
}

#[test]
fn a_value_s_panic_while_it_is_dropped_drops_each_value_once_and_ends_the_channel() {
    everywhere(|| {
        for kind in [Some(5000), None] {
            let drops = Arc::new(AtomicUsize::new(0));
            let (sender, receiver) = make(kind);
            (0..5000).for_each(|number| sender.try_send(Bomb(number, Arc::clone(&drops))).unwrap());
            let panic = catch_unwind(AssertUnwindSafe(|| drop(receiver))).unwrap_err();
            assert_eq!(*panic.downcast_ref::<&str>().unwrap(), "bomb");
            let refused = sender.try_send(Bomb(0, Arc::clone(&drops)));
            assert!(matches!(refused, Err(TrySendError::Disconnected(_))));
            drop(refused);
            drop(sender);
            assert_eq!(drops.load(Ordering::SeqCst), 5001, "what comes after the panic as well");
        }
    });
}

#[test]
fn values_that_all_panic_while_they_are_dropped_are_dropped_and_the_first_panic_goes_on() {
    struct Numbered(usize, Arc<AtomicUsize>);
    impl Drop for Numbered {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
            std::panic::resume_unwind(Box::new(self.0));
        }
    }
    everywhere(|| {
        for kind in [Some(40), None] {
            let drops = Arc::new(AtomicUsize::new(0));
            let (sender, receiver) = make(kind);
            (0..40).for_each(|number| sender.try_send(Numbered(number, Arc::clone(&drops))).unwrap());
            let panic = catch_unwind(AssertUnwindSafe(|| drop(receiver))).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&0_usize));
            assert_eq!(drops.load(Ordering::SeqCst), 40);
        }
    });
}

#[test]
fn a_value_s_drop_may_send_on_its_own_channel() {
    struct Resends(Sender<Resends>, Arc<AtomicUsize>);
    impl Drop for Resends {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
            let again = Resends(self.0.clone(), Arc::clone(&self.1));
            // What cannot be sent must not be dropped here, or it would try again.
            self.0.try_send(again).map_err(std::mem::forget).expect_err("the receivers have gone");
        }
    }
    everywhere(|| {
        for kind in KEEPING {
            let drops = Arc::new(AtomicUsize::new(0));
            let (sender, receiver) = make(kind);
            sender.try_send(Resends(sender.clone(), Arc::clone(&drops))).unwrap();
            drop(sender);
            drop(receiver);
            assert_eq!(drops.load(Ordering::SeqCst), 1);
        }
    });
}

#[test]
fn a_value_s_drop_may_receive_and_use_its_own_channel() {
    struct Curious(Receiver<Curious>, Arc<AtomicUsize>);
    impl Drop for Curious {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
            assert!(self.0.len() <= 1000);
            // Each drop takes the next one out, one inside the other, for a while.
            if !self.1.load(Ordering::SeqCst).is_multiple_of(20) {
                drop(self.0.try_recv());
            }
        }
    }
    everywhere(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = make(None);
        (0..100).for_each(|_| sender.send(Curious(receiver.clone(), Arc::clone(&drops))).unwrap());
        drop(sender);
        while receiver.try_recv().is_ok() {}
        assert_eq!(drops.load(Ordering::SeqCst), 100);
    });
}

#[test]
fn handles_that_are_cloned_and_dropped_by_many_end_the_channel_once() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<()>(kind);
            let cloning = other.starts_many(4, |_| {
                let (sender, receiver) = (sender.clone(), receiver.clone());
                move || (0..300).for_each(|_| drop((sender.clone(), receiver.clone())))
            });
            assert_eq!(receiver.recv_timeout(ms(1)), Err(RecvTimeoutError::Timeout));
            join_all(cloning);
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            let watching = receiver.clone();
            let waiting = other.runs(move || watching.recv());
            drop(sender);
            assert_eq!(waiting.join(), Err(RecvError));
        }
    });
}

/// Waits for a value, in a way of this number.
fn receive(way: usize, receiver: &Receiver<usize>) -> Result<usize, RecvError> {
    let (_kept, quiet) = bounded(0);
    let mut select = Select::new();
    select.recv(receiver);
    match way {
        0 => receiver.recv(),
        1 => select! { recv(receiver) -> received => received, recv(quiet) -> received => received },
        2 => select.select().recv(receiver),
        _ => {
            select.ready();
            receiver.try_recv().map_err(|_empty_or_ended| RecvError)
        }
    }
}

#[test]
fn a_sender_that_comes_and_goes_beside_another_ends_no_wait() {
    anywhere(|other| {
        for kind in KINDS {
            for way in 0..4 {
                let (sender, receiver) = make(kind);
                let receiving = other.runs(move || receive(way, &receiver));
                pause();
                drop(sender.clone());
                pause();
                sender.send(7).unwrap();
                assert_eq!(receiving.join(), Ok(7), "{kind:?}, way {way}");
            }
        }
    });
}

#[test]
fn a_receiver_that_comes_and_goes_beside_another_ends_no_wait() {
    anywhere(|other| {
        for capacity in LIMITED {
            let (sender, receiver) = bounded(capacity);
            (0..capacity).for_each(|number| sender.send(number).unwrap());
            let sending = other.starts_many(2, |way| {
                let sender = sender.clone();
                move || match way {
                    0 => sender.send(capacity),
                    _ => select! {
                        send(sender, capacity) -> sent => sent,
                        recv(never::<()>()) -> _ => panic!("never"),
                    },
                }
            });
            pause();
            drop(receiver.clone());
            pause();
            drop(sender);
            assert!(receiver.iter().eq((0..=capacity).chain([capacity])), "capacity {capacity}");
            assert_eq!(join_all(sending), [Ok(()), Ok(())]);
        }
    });
}

#[test]
fn receives_in_vain_leave_the_length_of_an_ended_channel_alone() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<()>(kind);
            let receiving = other.starts_many(8, |_| {
                let receiver = receiver.clone();
                move || {
                    for round in 0..200 {
                        assert_eq!(receiver.recv(), Err(RecvError));
                        (round % 20 == 0).then(give_way);
                    }
                }
            });
            drop(sender);
            for _ in 0..50 {
                assert_eq!((receiver.len(), receiver.is_empty()), (0, true));
                give_way();
            }
            join_all(receiving);
            assert_eq!(receiver.len(), 0);
        }
    });
}

#[test]
fn the_peeking_of_an_end_does_not_take_anything() {
    anywhere(|other| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            assert_eq!((receiver.len(), receiver.try_recv()), (0, Err(TryRecvError::Empty)));
            let sending = other.runs(move || sender.send(10).unwrap());
            until(|| receiver.len() == 1);
            sending.join();
            assert_eq!((receiver.len(), receiver.recv()), (1, Ok(10)));
            assert_eq!((receiver.len(), receiver.is_empty()), (0, true));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        }
    });
}
