//! The promises of `broadcast`.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::common::{beside, everywhere, give_way, guarded, in_tasks, pause, runtime, until};
use crate::future::{Woken, block_on, poll};
use fibra_sync::Mutex;
use fibra_sync::broadcast::error::{RecvError, RecvTimeoutError, SendError, TryRecvError};
use fibra_sync::broadcast::{Receiver, Sender, WeakSender, channel};

#[test]
fn each_receiver_gets_each_message() {
    everywhere(|| {
        let (sender, mut first) = channel(16);
        assert_eq!(first.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(sender.send("one"), Ok(1));
        let mut second = sender.subscribe();
        assert_eq!(second.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(sender.send("two"), Ok(2));
        assert_eq!((first.recv(), first.recv()), (Ok("one"), Ok("two")));
        assert_eq!(second.recv(), Ok("two"));
        drop(sender);
        assert_eq!(first.recv(), Err(RecvError::Closed));
        assert_eq!(second.try_recv(), Err(TryRecvError::Closed));
    });
}

#[test]
fn a_send_wakes_all_waiters() {
    everywhere(|| {
        let (sender, receiver) = channel(4);
        let sides: Vec<_> = (0..70)
            .map(|_| {
                let mut receiver = receiver.resubscribe();
                beside(move || receiver.recv())
            })
            .collect();
        drop(receiver);
        pause();
        assert_eq!(sender.send(5), Ok(70));
        assert!(sides.into_iter().all(|side| side.join() == Ok(5)));
    });
}

#[test]
fn a_dropped_sender_wakes_all_waiters() {
    everywhere(|| {
        let (sender, receiver) = channel::<u32>(4);
        let sides: Vec<_> = (0..70)
            .map(|_| {
                let mut receiver = receiver.resubscribe();
                beside(move || receiver.recv())
            })
            .collect();
        let other = sender.clone();
        drop(sender);
        pause();
        assert!(!receiver.is_closed());
        drop(other);
        assert!(sides.into_iter().all(|side| side.join() == Err(RecvError::Closed)));
        assert!(receiver.is_closed());
    });
}

#[test]
fn a_send_without_receivers_fails_and_a_later_one_may_not() {
    let sender = Sender::new(4);
    assert_eq!(sender.send(1), Err(SendError(1)));
    let mut receiver = sender.subscribe();
    assert_eq!(sender.send(2), Ok(1));
    assert_eq!(receiver.recv(), Ok(2));
    drop(receiver);
    assert_eq!(sender.send(3), Err(SendError(3)));
}

#[test]
#[should_panic(expected = "capacity")]
fn no_capacity_panics() {
    drop(channel::<u32>(0));
}

#[test]
#[should_panic(expected = "capacity")]
fn too_much_capacity_panics() {
    drop(channel::<u32>(usize::MAX / 2 + 1));
}

#[test]
fn the_sender_counts_what_is_unseen() {
    let (sender, mut first) = channel(4);
    let mut second = sender.subscribe();
    assert!(sender.is_empty() && first.is_empty());
    (0..3).for_each(|message| _ = sender.send(message).unwrap());
    assert_eq!((sender.len(), first.len()), (3, 3));
    first.recv().unwrap();
    assert_eq!(sender.len(), 3);
    second.recv().unwrap();
    assert_eq!(sender.len(), 2);
    drop(first);
    assert_eq!(sender.len(), 2);
    second.recv().unwrap();
    assert_eq!((sender.len(), sender.receiver_count()), (1, 1));
    (0..9).for_each(|message| _ = sender.send(message).unwrap());
    assert_eq!((sender.len(), second.len()), (4, 10));
    drop(second);
    assert_eq!((sender.len(), sender.receiver_count()), (0, 0));
    sender.subscribe();
    assert!(sender.is_empty());
}

#[test]
fn a_sender_waits_until_it_is_deserted() {
    everywhere(|| {
        let (sender, receiver) = channel::<u32>(4);
        let other = receiver.resubscribe();
        assert!(!sender.closed_timeout(Duration::from_millis(1)));
        let waiting = beside(move || {
            sender.closed();
            sender
        });
        drop(receiver);
        pause();
        drop(other);
        assert!(waiting.join().closed_timeout(Duration::ZERO));
    });
}

#[test]
fn a_future_waits_until_the_sender_is_deserted() {
    let (sender, receiver) = channel::<u32>(4);
    let woken = Arc::<Woken>::default();
    {
        let mut closed = pin!(sender.closed_async());
        let mut dropped = Box::pin(sender.closed_async());
        assert!(poll(closed.as_mut(), &woken).is_pending());
        assert!(poll(dropped.as_mut(), &woken).is_pending());
        drop(dropped);
        drop(receiver);
        assert_eq!(woken.times(), 1);
        assert_eq!(poll(closed.as_mut(), &woken), Poll::Ready(()));
    }
    block_on(sender.closed_async());
    let receiver = sender.subscribe();
    assert!(poll(pin!(sender.closed_async()), &woken).is_pending());
    drop(receiver);
    assert_eq!(woken.times(), 1);
}

#[test]
fn the_wait_for_the_end_of_all_receivers_goes_on_if_a_receiver_subscribes_at_their_end() {
    let (sender, receiver) = channel::<u32>(1);
    let woken = Arc::<Woken>::default();
    let mut closed = pin!(sender.closed_async());
    assert!(poll(closed.as_mut(), &woken).is_pending());
    drop(receiver);
    assert_eq!(woken.times(), 1);
    let late = sender.subscribe();
    assert!(poll(closed.as_mut(), &woken).is_pending());
    drop(late);
    assert_eq!(woken.times(), 2);
    assert!(poll(closed, &woken).is_ready());
}

#[test]
fn a_sender_alone_is_deserted() {
    let sender = Sender::<u32>::new(1);
    assert!(sender.closed_timeout(Duration::ZERO));
    let woken = Arc::<Woken>::default();
    assert!(poll(pin!(sender.closed_async()), &woken).is_ready());
    let _receiver = sender.subscribe();
    assert!(poll(pin!(sender.closed_async()), &woken).is_pending());
}

#[test]
fn a_new_subscription_sees_later_messages() {
    let (sender, mut receiver) = channel(1);
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    let mut again = receiver.resubscribe();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!(again.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(receiver.try_recv(), Ok(2));
    sender.send(3).unwrap();
    assert_eq!((again.try_recv(), receiver.try_recv()), (Ok(3), Ok(3)));
    assert_eq!((again.try_recv(), receiver.try_recv()), (Err(TryRecvError::Empty), Err(TryRecvError::Empty)));
}

#[test]
fn the_end_of_one_of_two_senders_wakes_no_receiver() {
    let (sender, mut receiver) = channel::<u32>(1);
    let (other, woken) = (sender.clone(), Arc::<Woken>::default());
    let mut receiving = pin!(receiver.recv_async());
    assert!(poll(receiving.as_mut(), &woken).is_pending());
    drop(sender);
    assert_eq!(woken.times(), 0);
    assert!(poll(receiving.as_mut(), &woken).is_pending());
    drop(other);
    assert_eq!(woken.times(), 1);
    assert_eq!(poll(receiving, &woken), Poll::Ready(Err(RecvError::Closed)));
}

#[test]
fn it_knows_its_own() {
    let (sender, receiver) = channel::<u32>(1);
    let (stranger, other) = channel::<u32>(1);
    assert!(sender.same_channel(&sender.clone()) && !sender.same_channel(&stranger));
    assert!(receiver.same_channel(&receiver.resubscribe()) && !receiver.same_channel(&other));
}

#[test]
fn a_timed_receive_ends() {
    everywhere(|| {
        let (sender, mut receiver) = channel(1);
        let begin = Instant::now();
        assert_eq!(receiver.recv_timeout(Duration::from_millis(10)), Err(RecvTimeoutError::Timeout));
        assert!(begin.elapsed() >= Duration::from_millis(10));
        assert_eq!(receiver.recv_deadline(begin), Err(RecvTimeoutError::Timeout));
        sender.send(1).unwrap();
        assert_eq!(receiver.recv_timeout(Duration::MAX), Ok(1));
        drop(sender);
        assert_eq!(receiver.recv_deadline(begin), Err(RecvTimeoutError::Closed));
    });
}

/// A message that counts those alive.
#[derive(Debug)]
struct Token(Arc<AtomicUsize>);

impl Token {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Token(Arc::clone(alive))
    }
}

impl Clone for Token {
    fn clone(&self) -> Self {
        Token::new(&self.0)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        assert_ne!(self.0.fetch_sub(1, Ordering::SeqCst), 0, "dropped twice");
    }
}

#[test]
fn the_last_receiver_of_a_message_drops_it() {
    let alive = Arc::new(AtomicUsize::new(0));
    let count = || alive.load(Ordering::SeqCst);
    let (sender, mut receiver) = channel(4);
    let other = sender.subscribe();
    sender.send(Token::new(&alive)).unwrap();
    sender.send(Token::new(&alive)).unwrap();
    drop(receiver.recv().unwrap());
    assert_eq!(count(), 2);
    drop(other);
    assert_eq!(count(), 1);
    drop(receiver);
    assert_eq!(count(), 0);
    assert!(sender.send(Token::new(&alive)).is_err());
    assert_eq!(count(), 0);
}

#[test]
fn an_overwritten_message_is_dropped() {
    let alive = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel(2);
    (0..10).for_each(|_| _ = sender.send(Token::new(&alive)).unwrap());
    assert_eq!(alive.load(Ordering::SeqCst), 2);
    drop((sender, receiver));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

/// Waits in its drop until it may end. The drop of a zero panics.
struct Slow(u32, Arc<Mutex<()>>, Arc<AtomicUsize>);

impl Clone for Slow {
    fn clone(&self) -> Self {
        unreachable!("the last receiver of a message gets it")
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        drop(self.1.lock());
        self.2.fetch_add(1, Ordering::SeqCst);
        if self.0 == 0 {
            std::panic::resume_unwind(Box::new("bomb"));
        }
    }
}

#[test]
fn the_last_receiver_drops_what_is_queued_before_the_channel_counts_as_closed() {
    everywhere(|| {
        let (gate, drops) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
        let (sender, receiver) = channel(4);
        (1..=3).for_each(|n| _ = sender.send(Slow(n, Arc::clone(&gate), Arc::clone(&drops))));
        let shut = gate.lock();
        let leaving = beside(move || drop(receiver));
        until(|| sender.receiver_count() == 0);
        assert!(!sender.closed_timeout(Duration::from_millis(1)) && drops.load(Ordering::SeqCst) == 0);
        let mut closing = pin!(sender.closed_async());
        assert!(poll(closing.as_mut(), &Arc::default()).is_pending());
        let refused = sender.send(Slow(4, Arc::default(), Arc::default()));
        assert!(refused.is_err(), "no receiver is there to receive it");
        drop(shut);
        sender.closed();
        assert_eq!(drops.load(Ordering::SeqCst), 3);
        leaving.join();
    });
}

#[test]
fn a_panic_in_the_drop_of_a_message_drops_the_others_and_closes_the_channel() {
    everywhere(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel(128);
        (0..100).for_each(|n| _ = sender.send(Slow(n, Arc::default(), Arc::clone(&drops))));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(receiver))).is_err());
        sender.closed();
        assert_eq!(drops.load(Ordering::SeqCst), 100);
    });
}

#[test]
fn a_receiver_that_goes_leaves_no_message_of_many() {
    let alive = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel(1024);
    let keeps = sender.subscribe();
    (0..1000).for_each(|_| _ = sender.send(Token::new(&alive)).unwrap());
    drop(receiver);
    assert_eq!(alive.load(Ordering::SeqCst), 1000);
    drop(keeps);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn a_clone_that_panics_has_received_its_message() {
    #[derive(Debug)]
    struct Bomb(bool);
    impl Clone for Bomb {
        fn clone(&self) -> Self {
            match self.0 {
                true => std::panic::resume_unwind(Box::new(())),
                false => Bomb(false),
            }
        }
    }
    everywhere(|| {
        let (sender, mut receiver) = channel(2);
        let _other = sender.subscribe();
        sender.send(Bomb(true)).unwrap();
        sender.send(Bomb(false)).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| receiver.recv())).is_err());
        assert!(!receiver.recv().unwrap().0);
    });
}

#[test]
fn a_clone_that_suspends_stops_no_other_receiver() {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    static OPEN: AtomicBool = AtomicBool::new(false);
    #[derive(Debug)]
    struct Slow(u32);
    impl Clone for Slow {
        fn clone(&self) -> Self {
            ENTERED.store(true, Ordering::SeqCst);
            while self.0 == 0 && !OPEN.load(Ordering::SeqCst) {
                give_way();
            }
            Slow(self.0)
        }
    }
    everywhere(|| {
        ENTERED.store(false, Ordering::SeqCst);
        OPEN.store(false, Ordering::SeqCst);
        let (sender, mut receiver) = channel(1);
        let mut other = sender.subscribe();
        sender.send(Slow(0)).unwrap();
        let cloning = beside(move || receiver.recv().unwrap().0);
        while !ENTERED.load(Ordering::SeqCst) {
            give_way();
        }
        for message in 1..10 {
            sender.send(Slow(message)).unwrap();
        }
        assert_eq!(other.recv().unwrap_err(), RecvError::Lagged(9));
        assert_eq!(other.recv().unwrap().0, 9);
        OPEN.store(true, Ordering::SeqCst);
        assert_eq!(cloning.join(), 0);
    });
}

#[test]
fn many_senders_and_receivers_lose_nothing_but_what_they_are_told() {
    const SENDERS: u64 = 4;
    const MESSAGES: u64 = 300;
    everywhere(|| {
        for capacity in [1, 8, 4096] {
            let (sender, receiver) = channel(capacity);
            let receivers: Vec<_> = (0..6)
                .map(|_| {
                    let mut receiver = receiver.resubscribe();
                    beside(move || {
                        let (mut seen, mut last) = (0, [None; SENDERS as usize]);
                        loop {
                            match receiver.recv() {
                                Ok((from, number)) => {
                                    let before: &mut Option<u64> = &mut last[from as usize];
                                    assert!(*before < Some(number), "in order");
                                    *before = Some(number);
                                    seen += 1;
                                }
                                Err(RecvError::Lagged(missed)) => seen += missed,
                                Err(RecvError::Closed) => return seen,
                            }
                        }
                    })
                })
                .collect();
            drop(receiver);
            let senders: Vec<_> = (0..SENDERS)
                .map(|from| {
                    let sender = sender.clone();
                    beside(move || {
                        for number in 0..MESSAGES {
                            sender.send((from, number)).unwrap();
                            if number % 16 == 0 {
                                give_way();
                            }
                        }
                    })
                })
                .collect();
            drop(sender);
            senders.into_iter().for_each(|side| side.join());
            for side in receivers {
                assert_eq!(side.join(), SENDERS * MESSAGES);
            }
        }
    });
}

#[test]
fn tasks_and_threads_meet() {
    for workers in [1, 2, 4] {
        guarded(|| {
            let runtime = runtime(workers);
            let (sender, mut receiver) = channel(1024);
            let tasks: Vec<_> = (0..10)
                .map(|_| {
                    let mut receiver = receiver.resubscribe();
                    runtime.handle().spawn(move || (0..500).map(|_| receiver.recv().unwrap()).sum::<u32>())
                })
                .collect();
            for message in 0..500 {
                sender.send(message).unwrap();
            }
            for task in tasks {
                assert_eq!(task.join().unwrap(), 499 * 250);
            }
            assert_eq!((0..500).map(|_| receiver.recv().unwrap()).sum::<u32>(), 499 * 250);
        });
    }
}

#[test]
fn sent_and_timed_out_at_once_loses_nothing() {
    everywhere(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let (sender, mut receiver) = channel(8192);
        let tokens = Arc::clone(&alive);
        let sending = beside(move || {
            for round in 0..5000 {
                sender.send(Token::new(&tokens)).unwrap();
                if round % 4 == 0 {
                    give_way();
                }
            }
        });
        let mut received = 0;
        loop {
            match receiver.recv_timeout(Duration::from_micros(received % 20)) {
                Ok(_) => received += 1,
                Err(RecvTimeoutError::Timeout) => {}
                Err(error) => break assert_eq!(error, RecvTimeoutError::Closed),
            }
        }
        sending.join();
        assert_eq!((received, alive.load(Ordering::SeqCst)), (5000, 0));
    });
}

#[test]
fn sent_and_dropped_at_once_leaves_nothing_alive() {
    everywhere(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        for round in 0..300 {
            let (sender, receiver) = channel(4);
            let receivers: Vec<_> = (0..2)
                .map(|index| {
                    let mut receiver = receiver.resubscribe();
                    beside(move || {
                        for _ in 0..(round + index) % 5 {
                            _ = receiver.try_recv();
                        }
                    })
                })
                .collect();
            drop(receiver);
            for _ in 0..10 {
                _ = sender.send(Token::new(&alive));
            }
            drop(sender);
            receivers.into_iter().for_each(|side| side.join());
            assert_eq!(alive.load(Ordering::SeqCst), 0);
        }
    });
}

#[test]
fn cancelled_and_sent_at_once_loses_nothing() {
    in_tasks(|| {
        let (sender, mut receiver) = channel(4);
        for round in 0..1000 {
            let mut other = sender.subscribe();
            let receiving = fibra_runtime::spawn(move || other.recv());
            (0..round % 3).for_each(|_| give_way());
            let canceller = {
                let task = receiving.task().clone();
                fibra_runtime::spawn(move || task.cancel())
            };
            sender.send(round).unwrap();
            assert_eq!(receiver.recv(), Ok(round));
            match receiving.join() {
                Ok(received) => assert_eq!(received, Ok(round)),
                Err(error) => assert!(error.is_cancelled()),
            }
            canceller.join().unwrap();
            assert!(sender.is_empty());
        }
    });
}

#[test]
fn a_loop_over_ready_messages_lets_others_run() {
    in_tasks(|| {
        let (sender, mut receiver) = channel(1);
        let ran = Arc::new(AtomicBool::new(false));
        let other = {
            let ran = Arc::clone(&ran);
            fibra_runtime::spawn(move || ran.store(true, Ordering::SeqCst))
        };
        while !ran.load(Ordering::SeqCst) {
            sender.send(1).unwrap();
            assert_eq!(receiver.recv(), Ok(1));
        }
        other.join().unwrap();
    });
}

#[test]
fn a_future_receives() {
    guarded(|| {
        let runtime = runtime(2);
        let (sender, mut receiver) = channel(16);
        let task = runtime.handle().spawn(move || {
            for message in 0..10 {
                fibra_runtime::yield_now();
                sender.send(message).unwrap();
            }
        });
        for message in 0..10 {
            assert_eq!(block_on(receiver.recv_async()), Ok(message));
        }
        assert_eq!(block_on(receiver.recv_async()), Err(RecvError::Closed));
        task.join().unwrap();
    });
}

#[test]
fn a_send_wakes_the_futures_that_were_polled_by_their_last_wakers() {
    let (sender, mut first) = channel(4);
    let mut second = sender.subscribe();
    let [former, last, unused] = [0, 1, 2].map(|_| Arc::<Woken>::default());
    let (mut polled, new) = (pin!(first.recv_async()), pin!(second.recv_async()));
    assert!(poll(polled.as_mut(), &former).is_pending());
    assert!(poll(polled.as_mut(), &last).is_pending());
    sender.send(1).unwrap();
    assert_eq!((former.times(), last.times()), (0, 1));
    assert_eq!((poll(polled, &former), poll(new, &unused)), (Poll::Ready(Ok(1)), Poll::Ready(Ok(1))));
    assert_eq!(unused.times(), 0);
}

#[test]
fn a_future_that_is_dropped_loses_no_message() {
    let (sender, mut receiver) = channel(4);
    {
        let mut future = pin!(receiver.recv_async());
        assert!(poll(future.as_mut(), &Arc::default()).is_pending());
        sender.send(1).unwrap();
    }
    assert_eq!(receiver.recv(), Ok(1));
}

#[test]
fn it_is_sent_and_shared_between_threads() {
    fn shared<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn sent<T: Send>(_: T) {}
    shared::<Sender<Mutex<String>>>();
    shared::<Receiver<Mutex<String>>>();
    shared::<WeakSender<Mutex<String>>>();
    sent(channel::<String>(1).1.recv_async());
    sent(channel::<String>(1).0.closed_async());
}

#[test]
fn the_wait_for_the_end_of_all_receivers_may_have_a_deadline() {
    everywhere(|| {
        let (sender, receiver) = channel::<u32>(1);
        let soon = || Instant::now() + Duration::from_millis(2);
        assert!(!sender.closed_deadline(soon()));
        drop(receiver);
        assert!(sender.closed_deadline(soon()));
    });
}
