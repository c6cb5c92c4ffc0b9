//! The promises of the channels, in the small.

use std::future::Future;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use crate::common::{beside, everywhere, give_way, guarded, pause, runtime};
use fibra_sync::channel::{
    self, Receiver, RecvError, RecvTimeoutError, Select, SendError, SendTimeoutError, Sender, TryRecvError,
    TrySendError,
};

use fibra_sync::select;

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
    fn sent<T: Send + Sync>() {}
    sent::<Select<'_>>();
    fn unwind_safe<T: Send + UnwindSafe + RefUnwindSafe>() {}
    unwind_safe::<channel::Permit<'_, i32>>();
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
fn unreceived_messages_are_dropped_with_the_last_receiver() {
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
        assert!(after.same_channel(&other));
        assert!(channel::after(Duration::from_secs(1000)).is_empty());
        assert!(after.recv().unwrap() >= begin + SHORT);
        assert_eq!(other.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(other.recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
        let ticks: Vec<_> = channel::tick(SHORT).iter().take(3).collect();
        assert!(ticks.windows(2).all(|two| two[1] - two[0] >= SHORT));
        assert_eq!(channel::never::<i32>().recv_timeout(SHORT), Err(RecvTimeoutError::Timeout));
    });
}

#[test]
fn a_select_takes_what_is_ready() {
    everywhere(|| {
        assert_eq!(select! { default => 1 }, 1);
        assert_eq!(select! { default(SHORT) => 2 }, 2);
        let (first, one) = channel::unbounded();
        let (second, two) = channel::bounded(1);
        first.send(1).unwrap();
        second.send(2).unwrap();
        let mut seen = [0, 0];
        for _ in 0..2 {
            select! {
                recv(one) -> message => { seen[0] += message.unwrap(); }
                recv(two) -> message => seen[1] += message.unwrap(),
            }
        }
        assert_eq!(seen, [1, 2]);
        select! {
            recv(one) -> _ => panic!("it is empty"),
            recv(two) -> _ => panic!("it is empty"),
            default => {}
        }
        let begin = Instant::now();
        select! {
            recv(one) -> _ => panic!("it is empty"),
            send(second, 3) -> sent => assert_eq!(sent, Ok(())),
        }
        select! {
            recv(one) -> _ => panic!("it is empty"),
            send(second, no_message()) -> _ => panic!("it is full"),
            default(SHORT) => assert!(begin.elapsed() >= SHORT),
        }
        drop(first);
        select! { recv(one) -> end => assert_eq!(end, Err(RecvError)) }
        drop(two);
        select! { send(second, 4) -> end => assert_eq!(end, Err(SendError(4))) }
    });
}

#[test]
fn the_body_of_a_case_may_move_what_the_cases_are_made_of() {
    let (sender, receiver) = channel::bounded(1);
    let word = String::from("word");
    select! {
        recv(receiver) -> _ => drop(word),
        send(sender, word) -> sent => {
            sent.unwrap();
            drop(sender);
            assert_eq!(receiver.into_iter().collect::<Vec<_>>(), ["word"]);
        }
    }
    let found = loop {
        let (_sender, receiver) = channel::bounded::<i32>(1);
        let receivers: [Receiver<i32>; 0] = [];
        select! {
            recv(receivers.first().unwrap_or(&channel::never())) -> _ => continue,
            recv(receiver) -> message => break message.ok(),
            default() => break None,
        }
    };
    assert_eq!(found, None);
}

#[test]
fn selects_that_wait_are_woken() {
    everywhere(|| {
        for (sender, receiver) in every_kind() {
            let (other, nothing) = channel::bounded::<usize>(1);
            let consumer = beside(move || {
                let mut all = Vec::new();
                loop {
                    select! {
                        recv(receiver) -> message => match message {
                            Ok(message) => all.push(message),
                            Err(RecvError) => break all,
                        },
                        recv(nothing) -> message => panic!("{message:?}"),
                    }
                }
            });
            (0..300).for_each(|n| sender.send(n).unwrap());
            drop(sender);
            assert!(consumer.join().into_iter().eq(0..300));
            drop(other);
        }
    });
}

#[test]
fn selects_face_each_other() {
    everywhere(|| {
        for ((sender, receiver), (back, answer)) in every_kind().into_iter().zip(every_kind()) {
            let other = beside(move || exchange(&back, &receiver));
            assert_eq!(exchange(&sender, &answer), (300, 300));
            assert_eq!(other.join(), (300, 300));
        }
    });
}

/// Sends 300 messages and receives 300, whichever can be done.
fn exchange(sender: &Sender<i32>, receiver: &Receiver<i32>) -> (i32, i32) {
    let (mut sent, mut received) = (0, 0);
    let never = channel::never();
    while (sent, received) != (300, 300) {
        let receiver = if received < 300 { receiver } else { &never };
        if sent == 300 {
            received += receiver.recv().unwrap();
            continue;
        }
        select! {
            send(sender, 1) -> done => {
                done.unwrap();
                sent += 1;
            }
            recv(receiver) -> message => received += message.unwrap(),
        }
    }
    (sent, received)
}

#[test]
fn a_select_does_not_meet_itself() {
    everywhere(|| {
        let (sender, receiver) = channel::bounded(0);
        select! {
            send(sender, 1) -> _ => panic!("no receiver is there"),
            recv(receiver) -> _ => panic!("no sender is there"),
            default(SHORT) => {}
        }
    });
}

#[test]
fn many_selects_share_channels_and_lose_nothing() {
    everywhere(|| {
        let channels: Vec<_> =
            [0, 0, 1, 3].into_iter().map(channel::bounded::<usize>).chain([channel::unbounded()]).collect();
        let left = Arc::new(AtomicUsize::new(0));
        let sum = Arc::new(AtomicUsize::new(0));
        let total = 1500;
        let producers: Vec<_> = (0..15)
            .map(|part| {
                let senders: Vec<_> = channels.iter().map(|(sender, _)| sender.clone()).collect();
                beside(move || {
                    for n in part * 100..(part + 1) * 100 {
                        if n % 3 == 0 {
                            senders[n % 5].send(n).unwrap();
                            continue;
                        }
                        let mut select = Select::new();
                        senders.iter().for_each(|sender| {
                            select.send(sender);
                        });
                        let operation = select.select();
                        let index = operation.index();
                        operation.send(&senders[index], n).unwrap();
                    }
                })
            })
            .collect();
        let consumers: Vec<_> = (0..15)
            .map(|_| {
                let receivers: Vec<_> = channels.iter().map(|(_, receiver)| receiver.clone()).collect();
                let (left, sum) = (Arc::clone(&left), Arc::clone(&sum));
                beside(move || {
                    let [a, b, c, d, e] = &receivers[..] else { unreachable!() };
                    let mut take = |message: Result<usize, RecvError>| match message {
                        Ok(n) => {
                            left.fetch_add(1, Ordering::Relaxed);
                            sum.fetch_add(n, Ordering::Relaxed);
                            true
                        }
                        Err(RecvError) => false,
                    };
                    while select! {
                        recv(a) -> message => take(message) || drain(&receivers, &mut take),
                        recv(b) -> message => take(message) || drain(&receivers, &mut take),
                        recv(c) -> message => take(message) || drain(&receivers, &mut take),
                        recv(d) -> message => take(message) || drain(&receivers, &mut take),
                        recv(e) -> message => take(message) || drain(&receivers, &mut take),
                    } {}
                })
            })
            .collect();
        drop(channels);
        producers.into_iter().for_each(|producer| producer.join());
        consumers.into_iter().for_each(|consumer| consumer.join());
        assert_eq!(left.load(Ordering::Relaxed), total);
        assert_eq!(sum.load(Ordering::Relaxed), total * (total - 1) / 2);
    });
}

/// One of the channels has ended: all are about to.
fn drain(receivers: &[Receiver<usize>], take: &mut impl FnMut(Result<usize, RecvError>) -> bool) -> bool {
    receivers.iter().for_each(|receiver| {
        receiver.iter().for_each(|n| {
            take(Ok(n));
        });
    });
    false
}

fn no_message() -> i32 {
    resume_unwind(Box::new("no message"))
}

#[test]
fn a_message_expression_that_panics_loses_nothing() {
    everywhere(|| {
        for (sender, receiver) in every_kind::<i32>() {
            let consumer = beside(move || receiver.recv());
            pause();
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                select! {
                    send(sender, no_message()) -> _ => {}
                    recv(channel::never::<i32>()) -> _ => {}
                }
            }));
            assert!(panicked.is_err());
            select! {
                send(sender, 5) -> sent => sent.unwrap(),
                recv(channel::never::<i32>()) -> _ => {}
            }
            assert_eq!(consumer.join(), Ok(5));
        }
    });
}

#[test]
fn a_select_waits_for_the_clock() {
    everywhere(|| {
        let (_sender, receiver) = channel::bounded::<i32>(0);
        let begin = Instant::now();
        select! {
            recv(receiver) -> message => panic!("{message:?}"),
            recv(channel::after(SHORT)) -> due => assert!(due.unwrap() >= begin + SHORT),
            recv(channel::after(Duration::from_secs(1000))) -> _ => panic!("too early"),
        }
    });
}

#[test]
fn a_ready_channel_notifies_all_watchers() {
    everywhere(|| {
        let (sender, receiver) = channel::bounded(1);
        let watchers: Vec<_> = (0..5)
            .map(|_| {
                let receiver = receiver.clone();
                beside(move || {
                    let mut select = Select::new();
                    let never = channel::never::<i32>();
                    select.recv(&never);
                    let index = select.recv(&receiver);
                    assert_eq!(select.ready(), index);
                })
            })
            .collect();
        pause();
        sender.send(1).unwrap();
        watchers.into_iter().for_each(|watcher| watcher.join());
        let mut select = Select::new();
        select.send(&sender);
        assert_eq!(select.ready_timeout(SHORT), Err(channel::ReadyTimeoutError));
        assert!(select.try_select().is_err());
        let emptier = beside(move || {
            pause();
            receiver.recv()
        });
        assert_eq!(select.ready(), 0);
        assert_eq!(emptier.join(), Ok(1));
    });
}

#[test]
fn a_cancelled_select_has_taken_nothing_or_all() {
    for workers in [1, 2, 4] {
        guarded(|| {
            runtime(workers).run(|| {
                for round in 0..500_usize {
                    let (sender, receiver) = channel::bounded::<usize>(round % 2);
                    let (ask, asked) = channel::bounded::<usize>(round / 2 % 2);
                    let consumer = fibra_runtime::spawn(move || {
                        select! {
                            recv(receiver) -> message => message.unwrap(),
                            send(ask, 0) -> _ => 0,
                        }
                    });
                    if round % 3 == 0 {
                        give_way();
                    }
                    let other = consumer.task().clone();
                    let canceller = fibra_runtime::spawn(move || other.cancel());
                    let sent = sender.try_send(round);
                    canceller.join().unwrap();
                    let taken = consumer.join();
                    drop(asked);
                    if let Ok(n) = taken
                        && n != 0
                    {
                        assert_eq!((n, sent), (round, Ok(())));
                    }
                }
            })
        });
    }
}

#[test]
#[should_panic(expected = "not completed")]
fn a_selected_operation_is_to_be_completed() {
    let (sender, _receiver) = channel::bounded::<i32>(1);
    let mut select = Select::new();
    select.send(&sender);
    drop(select.select());
}

#[test]
fn a_future_that_goes_away_gives_its_message_to_the_next() {
    let mut context = Context::from_waker(Waker::noop());
    for (sender, receiver) in every_kind() {
        let mut first = Box::pin(receiver.recv_async());
        let mut second = Box::pin(receiver.recv_async());
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        sender.send(1).unwrap();
        drop(first);
        assert_eq!(second.as_mut().poll(&mut context), Poll::Ready(Ok(1)));
        let mut third = Box::pin(receiver.recv_async());
        assert!(third.as_mut().poll(&mut context).is_pending());
        sender.send(2).unwrap();
        drop(third);
        assert_eq!((receiver.len(), receiver.recv(), receiver.len()), (1, Ok(2), 0));
    }
}

#[test]
fn futures_and_tasks_meet() {
    fn sent<F: Send>(f: F) -> F {
        f
    }
    for (sender, receiver) in every_kind() {
        let consumer = std::thread::spawn(move || receiver.iter().take(100).sum::<i32>());
        let mut sending = Box::pin(sent(async {
            for _ in 0..100 {
                sender.send_async(1).await.unwrap();
            }
        }));
        struct Unpark(std::thread::Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        while sending.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            std::thread::park();
        }
        assert_eq!(consumer.join().unwrap(), 100);
    }
}
