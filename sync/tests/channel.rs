//! The promises of the channels, in the small.

mod common;

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{beside, everywhere, give_way, guarded, pause, runtime};
use fibra_sync::channel::{
    self, Receiver, RecvError, RecvTimeoutError, SendError, SendTimeoutError, Sender, TryRecvError,
    TrySendError,
};

const SHORT: Duration = Duration::from_millis(5);

/// A rendezvous, small and large bounds, and none.
fn every_kind<T>() -> [(Sender<T>, Receiver<T>); 4] {
    [channel::bounded(0), channel::bounded(1), channel::bounded(7), channel::unbounded()]
}

#[test]
fn ends_are_send_sync_and_unwind_safe() {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    all::<Sender<i32>>();
    all::<Receiver<i32>>();
}

#[test]
fn messages_come_in_the_order_in_which_they_were_sent() {
    everywhere(|| {
        for (sender, receiver) in every_kind() {
            let producer = beside(move || (0..1000).for_each(|n| sender.send(n).unwrap()));
            assert!(receiver.iter().eq(0..1000));
            producer.join();
        }
    });
}

#[test]
fn each_message_is_received_once() {
    everywhere(|| {
        for (sender, receiver) in every_kind() {
            let producers: Vec<_> = (0..20)
                .map(|part| {
                    let sender = sender.clone();
                    beside(move || (0..100).for_each(|n| sender.send(part * 100 + n).unwrap()))
                })
                .collect();
            drop(sender);
            let consumers: Vec<_> = (0..20)
                .map(|_| {
                    let receiver = receiver.clone();
                    beside(move || receiver.iter().collect::<Vec<usize>>())
                })
                .collect();
            producers.into_iter().for_each(|producer| producer.join());
            let mut all: Vec<_> = consumers.into_iter().flat_map(|consumer| consumer.join()).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..2000));
        }
    });
}

#[test]
fn tasks_and_threads_meet() {
    for workers in [1, 2, 4] {
        for (sender, receiver) in every_kind() {
            guarded(|| {
                let thread = std::thread::spawn(move || (0..500).for_each(|n| sender.send(n).unwrap()));
                runtime(workers).run(move || assert!(receiver.iter().eq(0..500)));
                thread.join().unwrap();
            });
        }
    }
}

#[test]
fn a_full_channel_refuses_and_an_empty_one_has_nothing() {
    everywhere(|| {
        let (sender, receiver) = channel::bounded(2);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(receiver.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
        assert_eq!((sender.try_send(1), sender.try_send(2)), (Ok(()), Ok(())));
        assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
        let begin = Instant::now();
        assert_eq!(sender.send_timeout(3, SHORT), Err(SendTimeoutError::Timeout(3)));
        assert!(begin.elapsed() >= SHORT);
        assert_eq!((sender.len(), receiver.len(), sender.is_full()), (2, 2, true));
        assert!(receiver.try_iter().eq([1, 2]));
        let (sender, receiver) = channel::bounded(0);
        assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(sender.send_deadline(1, Instant::now() + SHORT), Err(SendTimeoutError::Timeout(1)));
        assert_eq!(receiver.recv_deadline(Instant::now() + SHORT), Err(RecvTimeoutError::Timeout));
    });
}

#[test]
fn without_senders_what_is_left_is_received_first() {
    everywhere(|| {
        let (sender, receiver) = channel::bounded(2);
        sender.send(1).unwrap();
        drop(sender.clone());
        drop(sender);
        assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Err(RecvError)));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(receiver.recv_timeout(SHORT), Err(RecvTimeoutError::Disconnected));
    });
}

#[test]
fn the_end_of_one_side_wakes_the_other() {
    everywhere(|| {
        let (sender, receiver) = channel::bounded::<i32>(0);
        let waiting: Vec<_> = (0..50)
            .map(|_| {
                let receiver = receiver.clone();
                beside(move || receiver.recv())
            })
            .collect();
        pause();
        drop(sender);
        waiting.into_iter().for_each(|waiting| assert_eq!(waiting.join(), Err(RecvError)));
        let (sender, receiver) = channel::bounded(1);
        sender.send(0).unwrap();
        let waiting: Vec<_> = (0..50)
            .map(|n| {
                let sender = sender.clone();
                beside(move || (n, sender.send(n)))
            })
            .collect();
        pause();
        drop(receiver);
        for (n, sent) in waiting.into_iter().map(|waiting| waiting.join()) {
            assert_eq!(sent, Err(SendError(n)));
        }
    });
}

/// Counts its drops.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_nobody_can_receive_is_dropped_with_the_last_receiver() {
    for (sender, receiver) in [channel::bounded(100), channel::unbounded()] {
        let drops = Arc::new(AtomicUsize::new(0));
        (0..100).for_each(|_| assert!(sender.send(Dropped(Arc::clone(&drops))).is_ok()));
        drop(receiver.recv());
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        drop(receiver);
        assert_eq!(drops.load(Ordering::Relaxed), 100);
        assert_eq!(sender.len(), 0);
        assert!(sender.send(Dropped(Arc::clone(&drops))).is_err());
        assert_eq!(drops.load(Ordering::Relaxed), 101);
    }
}

#[test]
fn a_message_without_size_is_a_message() {
    everywhere(|| {
        for (sender, receiver) in every_kind() {
            let producer = beside(move || (0..100).for_each(|_| sender.send(()).unwrap()));
            assert_eq!(receiver.iter().count(), 100);
            producer.join();
        }
    });
}

#[test]
fn a_message_that_comes_with_the_deadline_is_received_or_given_back() {
    everywhere(|| {
        for (sender, receiver) in [channel::bounded(0), channel::bounded(1)] {
            let producer = beside(move || {
                let mut sent = 0;
                for round in 0..2000_u64 {
                    match sender.send_timeout(round, Duration::from_micros(round % 40)) {
                        Ok(()) => sent += 1,
                        Err(SendTimeoutError::Timeout(kept)) => assert_eq!(kept, round),
                        Err(SendTimeoutError::Disconnected(_)) => {
                            unreachable!("the receiver outlives its sender")
                        }
                    }
                }
                sent
            });
            let mut received = 0;
            let mut round = 0;
            loop {
                round += 1;
                match receiver.recv_timeout(Duration::from_micros(round % 40)) {
                    Ok(_) => received += 1,
                    Err(RecvTimeoutError::Timeout) => give_way(),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            assert_eq!(producer.join(), received);
        }
    });
}

#[test]
fn the_clock_sends_once_or_each_period_or_never() {
    everywhere(|| {
        let begin = Instant::now();
        let after = channel::after(SHORT);
        let other = after.clone();
        assert!(after.same_channel(&other) && after.is_empty());
        assert!(after.recv().unwrap() >= begin + SHORT);
        assert_eq!(other.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(other.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
        let ticks: Vec<_> = channel::tick(SHORT).iter().take(3).collect();
        assert!(ticks.windows(2).all(|two| two[1] - two[0] >= SHORT));
        assert_eq!(channel::never::<i32>().recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
    });
}
