//! What a channel with a bound promises of its own.

use std::time::Instant;

use crate::channels::{KEEPING, anywhere, make, ms};
use crate::common::{everywhere, give_way, in_tasks, pause, until};
use fibra_runtime as fibra;
use fibra_sync::channel::{RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError};
use fibra_sync::channel::{TrySendError, bounded};

#[test]
fn it_keeps_one_value_without_a_receiver() {
    everywhere(|| {
        let (sender, receiver) = bounded(1);
        sender.send(7).unwrap();
        assert_eq!(receiver.try_recv(), Ok(7));
        sender.send(8).unwrap();
        assert_eq!(receiver.recv(), Ok(8));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(receiver.recv_timeout(ms(5)), Err(RecvTimeoutError::Timeout));
    });
}

#[test]
fn its_capacity_is_what_was_asked_for() {
    for capacity in [1, 2, 3, 7, 8, 1000] {
        let (sender, receiver) = bounded::<()>(capacity);
        assert_eq!((sender.capacity(), receiver.capacity()), (Some(capacity), Some(capacity)));
        (0..capacity).for_each(|_| sender.try_send(()).unwrap());
        assert_eq!(sender.try_send(()), Err(TrySendError::Full(())));
    }
}

#[test]
fn both_ends_tell_how_full_it_is() {
    for capacity in [1, 2, 3, 50] {
        let (sender, receiver) = bounded(capacity);
        // Often enough to come around the ring, and to wrap the numbers of its slots.
        for _ in 0..5 {
            for len in 0..=capacity {
                assert_eq!((sender.len(), receiver.len()), (len, len));
                assert_eq!((sender.is_empty(), receiver.is_empty()), (len == 0, len == 0));
                assert_eq!((sender.is_full(), receiver.is_full()), (len == capacity, len == capacity));
                let _ = sender.try_send(());
            }
            for len in (0..capacity).rev() {
                receiver.recv().unwrap();
                assert_eq!((sender.len(), receiver.len(), sender.is_full()), (len, len, false));
            }
        }
    }
}

#[test]
fn its_length_never_goes_over_its_capacity() {
    anywhere(|other| {
        for capacity in [1, 3] {
            let (sender, receiver) = bounded(capacity);
            let sending = other.runs(move || {
                for number in 0..1000 {
                    sender.send(number).unwrap();
                    assert!(sender.len() <= capacity);
                }
            });
            for number in 0..1000 {
                assert_eq!(receiver.recv(), Ok(number));
                assert!(receiver.len() <= capacity);
            }
            sending.join();
            assert_eq!(receiver.len(), 0);
        }
    });
}

#[test]
fn try_recv_takes_what_is_there_and_tells_why_not() {
    anywhere(|other| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            other.runs(move || sender.send(7).unwrap()).join();
            assert_eq!(receiver.try_recv(), Ok(7));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        }
    });
}

#[test]
fn recv_waits_for_a_value_and_for_the_end() {
    anywhere(|other| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            let sending = other.runs(move || {
                for number in 7..10 {
                    pause();
                    sender.send(number).unwrap();
                }
                pause();
            });
            assert_eq!(receiver.iter().collect::<Vec<_>>(), [7, 8, 9]);
            assert_eq!(receiver.recv(), Err(RecvError));
            sending.join();
        }
    });
}

#[test]
fn recv_timeout_waits_no_less_than_it_says() {
    anywhere(|other| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            let start = Instant::now();
            assert_eq!(receiver.recv_timeout(ms(5)), Err(RecvTimeoutError::Timeout));
            assert_eq!(receiver.recv_deadline(start + ms(7)), Err(RecvTimeoutError::Timeout));
            assert!(start.elapsed() >= ms(7));
            let sending = other.runs(move || sender.send(7).unwrap());
            assert_eq!(receiver.recv_timeout(ms(60_000)), Ok(7));
            assert_eq!(receiver.recv_timeout(ms(60_000)), Err(RecvTimeoutError::Disconnected));
            sending.join();
        }
    });
}

#[test]
fn try_send_takes_what_has_room_and_tells_why_not() {
    anywhere(|other| {
        let (sender, receiver) = bounded(1);
        assert_eq!(sender.try_send(1), Ok(()));
        assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
        other.runs(move || assert_eq!(receiver.recv(), Ok(1))).join();
        assert_eq!(sender.try_send(3), Err(TrySendError::Disconnected(3)));
    });
}

#[test]
fn send_waits_for_room() {
    anywhere(|other| {
        for capacity in [1, 3] {
            let (sender, receiver) = bounded(capacity);
            (0..capacity).for_each(|number| sender.send(number).unwrap());
            let fullness = sender.clone();
            let sending = other.runs(move || sender.send(capacity).unwrap());
            pause();
            assert_eq!(fullness.len(), capacity);
            drop(fullness);
            assert!(receiver.iter().eq(0..=capacity));
            sending.join();
        }
    });
}

#[test]
fn send_timeout_gives_the_value_back() {
    anywhere(|other| {
        let (sender, receiver) = bounded(1);
        assert_eq!(sender.send_timeout(1, ms(0)), Ok(()));
        let start = Instant::now();
        assert_eq!(sender.send_timeout(2, ms(0)), Err(SendTimeoutError::Timeout(2)));
        assert_eq!(sender.send_timeout(3, ms(5)), Err(SendTimeoutError::Timeout(3)));
        assert_eq!(sender.send_deadline(4, start + ms(7)), Err(SendTimeoutError::Timeout(4)));
        assert!(start.elapsed() >= ms(7));
        let receiving = other.runs(move || {
            pause();
            (receiver.recv().unwrap(), receiver.recv().unwrap())
        });
        assert_eq!(sender.send_timeout(5, ms(60_000)), Ok(()));
        assert_eq!(receiving.join(), (1, 5));
        assert_eq!(sender.send_timeout(6, ms(60_000)), Err(SendTimeoutError::Disconnected(6)));
        assert_eq!(sender.send(7), Err(SendError(7)));
    });
}

#[test]
fn a_deadline_that_is_over_takes_what_is_there() {
    everywhere(|| {
        for kind in KEEPING {
            let past = Instant::now();
            let (sender, receiver) = make(kind);
            assert_eq!(sender.send_deadline(5, past), Ok(()));
            assert_eq!(receiver.recv_deadline(past), Ok(5));
            assert_eq!(receiver.recv_deadline(past), Err(RecvTimeoutError::Timeout));
            assert_eq!(sender.send_timeout(6, ms(0)), Ok(()));
            assert_eq!(receiver.recv_timeout(ms(0)), Ok(6));
            assert_eq!(receiver.recv_timeout(ms(0)), Err(RecvTimeoutError::Timeout));
        }
    });
}

#[test]
fn a_timeout_beyond_the_clock_is_none() {
    const FOREVER: std::time::Duration = std::time::Duration::MAX;
    anywhere(|other| {
        for kind in [Some(0), Some(1), None] {
            let (sender, receiver) = make(kind);
            let sending = other.runs(move || {
                sender.send_timeout(1, FOREVER).unwrap();
                sender.send_timeout(2, FOREVER).unwrap();
            });
            pause();
            assert_eq!(receiver.recv_timeout(FOREVER), Ok(1));
            assert_eq!(receiver.recv_timeout(FOREVER), Ok(2));
            assert_eq!(receiver.recv_timeout(FOREVER), Err(RecvTimeoutError::Disconnected));
            sending.join();
        }
    });
}

/// Starts `count` tasks, each asleep in `f` before the next one starts.
fn queue<T: 'static>(count: usize, f: impl Fn(usize) -> T + Clone + 'static) -> Vec<fibra::JoinHandle<T>> {
    let waits = |number| {
        let f = f.clone();
        let task = fibra::spawn_local(move || f(number));
        (0..3).for_each(|_| fibra::yield_now());
        task
    };
    (0..count).map(waits).collect()
}

#[test]
fn the_longest_waiting_receiver_receives_first() {
    in_tasks(|| {
        for kind in crate::channels::KINDS {
            let (sender, receiver) = make(kind);
            let waiting = queue(10, move |_| receiver.recv().unwrap());
            (0..10).for_each(|number| sender.send(number).unwrap());
            let received: Vec<_> = waiting.into_iter().map(|task| task.join().unwrap()).collect();
            assert_eq!(received, (0..10).collect::<Vec<_>>(), "{kind:?}");
        }
    });
}

#[test]
fn the_longest_waiting_sender_sends_first() {
    in_tasks(|| {
        for capacity in crate::channels::LIMITED {
            let (sender, receiver) = bounded(capacity);
            (0..capacity).for_each(|number| sender.send(number).unwrap());
            let waiting = queue(10, move |number| sender.send(capacity + number).unwrap());
            assert!(receiver.iter().eq(0..capacity + 10), "capacity {capacity}");
            drop(waiting);
        }
    });
}

#[test]
fn a_waiter_that_gives_up_leaves_the_others_their_turns() {
    in_tasks(|| {
        for kind in crate::channels::KINDS {
            let (sender, receiver) = make(kind);
            let waiting = queue(9, move |number| match number % 3 == 1 {
                true => receiver.recv_timeout(ms(2)).ok(),
                false => receiver.recv().ok(),
            });
            until(|| [1, 4, 7].iter().all(|&number| waiting[number].is_finished()));
            (0..6).for_each(|number| sender.send(number).unwrap());
            let received: Vec<_> = waiting.into_iter().map(|task| task.join().unwrap()).collect();
            let expected = [Some(0), None, Some(1), Some(2), None, Some(3), Some(4), None, Some(5)];
            assert_eq!(received, expected, "{kind:?}");
        }
    });
}

#[test]
fn room_is_given_to_each_waiting_sender_when_a_receiver_takes_several() {
    in_tasks(|| {
        let (sender, receiver) = bounded(4);
        (0..4).for_each(|number| sender.send(number).unwrap());
        let waiting = queue(4, move |number| sender.send(4 + number).unwrap());
        let mut taken = Vec::new();
        taken.extend((0..4).map(|_| receiver.recv().unwrap()));
        (0..10).for_each(|_| give_way());
        assert!(waiting.iter().all(fibra::JoinHandle::is_finished), "four took, four may send");
        taken.extend(receiver.try_iter());
        assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6, 7]);
    });
}
