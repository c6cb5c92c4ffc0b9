//! What `Select::ready` promises: it tells which operation would not wait, and does nothing.

use std::time::Instant;

use crate::channels::{KEEPING, KINDS, LIMITED, anywhere, join_all, make, ms};
use crate::common::{everywhere, give_way, pause};
use fibra_sync::channel::{
    ReadyTimeoutError, Receiver, Select, TryReadyError, TryRecvError, TrySendError, after, bounded, tick,
    unbounded,
};

/// A select over one receiver.
fn receiving<T>(receiver: &Receiver<T>) -> Select<'_> {
    let mut select = Select::new();
    select.recv(receiver);
    select
}

#[test]
fn the_operation_that_is_ready_is_told_and_not_done() {
    everywhere(|| {
        for ready in 0..5 {
            let channels: Vec<_> = (0..5).map(|_| unbounded()).collect();
            channels[ready].0.send(ready).unwrap();
            let mut select = Select::new();
            channels.iter().for_each(|(_, receiver)| _ = select.recv(receiver));
            for _ in 0..3 {
                assert_eq!((select.ready(), select.try_ready()), (ready, Ok(ready)));
            }
            assert_eq!(channels[ready].1.try_recv(), Ok(ready));
            assert_eq!(select.try_ready(), Err(TryReadyError));
        }
    });
}

#[test]
fn nothing_is_told_before_it_is_ready() {
    everywhere(|| {
        for kind in KINDS {
            let (_sender, receiver) = make::<()>(kind);
            let (mut select, start) = (receiving(&receiver), Instant::now());
            assert_eq!(select.try_ready(), Err(TryReadyError));
            assert_eq!(select.ready_timeout(ms(3)), Err(ReadyTimeoutError));
            assert_eq!(select.ready_deadline(start + ms(5)), Err(ReadyTimeoutError));
            assert!(start.elapsed() >= ms(5));
        }
        for capacity in LIMITED {
            let (sender, _receiver) = bounded(capacity);
            (0..capacity).for_each(|_| sender.send(()).unwrap());
            let mut select = Select::new();
            select.send(&sender);
            assert_eq!(select.try_ready(), Err(TryReadyError));
            assert_eq!(select.ready_timeout(ms(1)), Err(ReadyTimeoutError));
        }
        let (sender, receiver) = bounded::<()>(0);
        let mut select = receiving(&receiver);
        select.send(&sender);
        assert_eq!(select.ready_timeout(ms(2)), Err(ReadyTimeoutError), "not with itself");
    });
}

#[test]
fn an_ended_channel_is_ready() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<i32>(kind);
            let ending = other.runs(move || {
                pause();
                drop(sender);
            });
            let mut select = receiving(&receiver);
            assert_eq!(select.ready_timeout(ms(60_000)), Ok(0));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
            assert_eq!((select.ready(), select.try_ready()), (0, Ok(0)));
            ending.join();
            let (sender, receiver) = make(kind);
            drop(receiver);
            let mut select = Select::new();
            select.send(&sender);
            assert_eq!((select.ready(), select.try_ready()), (0, Ok(0)));
            assert_eq!(sender.try_send(0), Err(TrySendError::Disconnected(0)));
        }
    });
}

#[test]
fn messages_left_in_an_ended_channel_are_ready_before_its_end() {
    everywhere(|| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            sender.send(1).unwrap();
            drop(sender);
            let mut select = receiving(&receiver);
            assert_eq!((select.ready(), receiver.try_recv()), (0, Ok(1)));
            assert_eq!((select.ready(), receiver.try_recv()), (0, Err(TryRecvError::Disconnected)));
        }
    });
}

#[test]
fn a_watcher_is_notified_when_a_message_comes() {
    anywhere(|other| {
        for kind in KINDS {
            let ((sender, receiver), (_kept, quiet)) = (make(kind), make::<i32>(kind));
            let sending = other.runs(move || {
                pause();
                sender.send(2).unwrap();
            });
            let mut select = receiving(&quiet);
            select.recv(&receiver);
            assert_eq!(select.ready_timeout(ms(60_000)), Ok(1));
            assert_eq!(receiver.try_recv(), Ok(2), "{kind:?}");
            sending.join();
        }
    });
}

#[test]
fn a_watcher_is_notified_when_there_is_room() {
    anywhere(|other| {
        for capacity in LIMITED {
            let (sender, receiver) = bounded(capacity);
            (0..capacity).for_each(|number| sender.send(number).unwrap());
            let taking = other.runs(move || {
                pause();
                (0..=capacity).map(|_| receiver.recv().unwrap()).collect::<Vec<_>>()
            });
            let mut select = Select::new();
            select.send(&sender);
            assert_eq!(select.ready_timeout(ms(60_000)), Ok(0));
            sender.try_send(capacity).unwrap();
            assert!(taking.join().into_iter().eq(0..=capacity));
        }
    });
}

#[test]
fn all_watchers_are_notified() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<()>(kind);
            let watching = other.starts_many(6, |_| {
                let receiver = receiver.clone();
                move || assert_eq!(receiving(&receiver).ready(), 0)
            });
            pause();
            let sending = other.runs(move || sender.send(()));
            join_all(watching);
            assert_eq!(receiver.recv(), Ok(()), "the message is still there");
            sending.join().unwrap();
        }
    });
}

#[test]
fn two_watchers_do_not_make_each_other_ready() {
    anywhere(|other| {
        let (sender, receiver) = bounded::<()>(0);
        let watching = other.runs(move || {
            let mut select = Select::new();
            select.send(&sender);
            let told = select.ready_timeout(ms(5));
            drop(select);
            (told, sender)
        });
        assert_eq!(receiving(&receiver).ready_timeout(ms(5)), Err(ReadyTimeoutError));
        assert_eq!(watching.join().0, Err(ReadyTimeoutError));
    });
}

#[test]
fn a_watcher_takes_no_turn_from_waiting_receivers() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let (watched, received) = (receiver.clone(), receiver);
            let watching = other.runs(move || receiving(&watched).ready_timeout(ms(10)));
            pause();
            let waiting = other.runs(move || received.recv());
            pause();
            sender.send(7).unwrap();
            assert_eq!(waiting.join(), Ok(7), "{kind:?}");
            let _ = watching.join();
        }
    });
}

#[test]
fn the_same_operation_is_told_under_each_of_its_numbers() {
    everywhere(|| {
        let (sender, receiver) = unbounded();
        let mut hits = [0; 4];
        while hits.contains(&0) {
            let mut select = receiving(&receiver);
            select.recv(&receiver);
            select.send(&sender);
            select.send(&sender);
            let index = select.ready();
            hits[index] += 1;
            match index {
                0 | 1 => assert_eq!(receiver.try_recv(), Ok(0)),
                _ => sender.try_send(0).unwrap(),
            }
        }
    });
}

#[test]
fn readiness_reported_to_a_lone_watcher_holds() {
    anywhere(|other| {
        let [(s1, r1), (s2, r2), (s3, r3)] = [make(None), make(Some(5)), make(Some(0))];
        let sending = other.runs(move || {
            for number in 0..200 {
                s1.send(number).unwrap();
                r3.recv().unwrap();
                s2.send(number).unwrap();
                r3.recv().unwrap();
            }
        });
        for number in 0..200 {
            for _ in 0..2 {
                let mut select = receiving(&r1);
                select.recv(&r2);
                match select.ready() {
                    0 => assert_eq!(r1.try_recv(), Ok(number)),
                    _ => assert_eq!(r2.try_recv(), Ok(number)),
                }
                s3.send(0).unwrap();
            }
        }
        sending.join();
    });
}

#[test]
fn readiness_of_two_rendezvous_holds_for_a_sender() {
    anywhere(|other| {
        let [(s1, r1), (s2, r2), (s3, r3)] = [bounded(0), bounded(0), bounded(10)];
        let receiving = other.runs(move || {
            for number in 0..200 {
                assert_eq!((r1.recv(), r2.recv()), (Ok(number), Ok(number)));
                r3.recv().unwrap();
            }
        });
        for number in 0..200 {
            for _ in 0..2 {
                let mut select = Select::new();
                select.send(&s1);
                select.send(&s2);
                [&s1, &s2][select.ready()].try_send(number).unwrap();
            }
            s3.send(0).unwrap();
        }
        receiving.join();
    });
}

#[test]
fn readiness_of_a_rendezvous_holds_in_both_directions() {
    anywhere(|other| {
        let [(s1, r1), (s2, r2), (s3, r3)] = [bounded(0), bounded(0), bounded(10)];
        let talking = other.runs(move || {
            for number in 0..200 {
                s1.send(number).unwrap();
                assert_eq!(r2.recv(), Ok(number));
                r3.recv().unwrap();
            }
        });
        for number in 0..200 {
            for _ in 0..2 {
                let mut select = receiving(&r1);
                select.send(&s2);
                match select.ready() {
                    0 => assert_eq!(r1.try_recv(), Ok(number)),
                    _ => s2.try_send(number).unwrap(),
                }
            }
            s3.send(0).unwrap();
        }
        talking.join();
    });
}

#[test]
fn watchers_at_their_deadline_try_again_until_all_is_through() {
    anywhere(|other| {
        for capacity in [1, 2] {
            let (sender, receiver) = bounded(capacity);
            let sending = other.runs(move || {
                for number in 0..200 {
                    (number % 50 == 0).then(pause);
                    let mut select = Select::new();
                    select.send(&sender);
                    while select.ready_timeout(ms(1)).is_err() {}
                    sender.try_send(number).unwrap();
                }
            });
            let mut select = receiving(&receiver);
            for number in 0..200 {
                (number % 70 == 0).then(pause);
                while select.ready_timeout(ms(1)).is_err() {}
                assert_eq!(receiver.try_recv(), Ok(number));
            }
            sending.join();
        }
    });
}

#[test]
fn many_watchers_share_what_comes() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<usize>(kind);
            let watching = other.starts_many(4, |_| {
                let receiver = receiver.clone();
                move || {
                    let mut sum = 0;
                    loop {
                        receiving(&receiver).ready();
                        match receiver.try_recv() {
                            Ok(number) => sum += number,
                            Err(TryRecvError::Empty) => give_way(),
                            Err(TryRecvError::Disconnected) => break sum,
                        }
                    }
                }
            });
            (0..100).for_each(|number| sender.send(number).unwrap());
            drop(sender);
            assert_eq!(join_all(watching).into_iter().sum::<usize>(), 4950);
        }
    });
}

#[test]
fn timers_tell_when_they_have_fired() {
    everywhere(|| {
        let start = Instant::now();
        for timer in [after(ms(2)), tick(ms(2))] {
            let mut select = receiving(&timer);
            assert_eq!(select.ready(), 0);
            assert!(start.elapsed() >= ms(2));
            timer.try_recv().unwrap();
        }
        let (soon, late) = (after(ms(1)), tick(ms(60_000)));
        let mut select = receiving(&late);
        select.recv(&soon);
        assert_eq!(select.ready_timeout(ms(60_000)), Ok(1));
    });
}
