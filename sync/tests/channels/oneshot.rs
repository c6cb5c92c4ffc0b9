//! The promises of `oneshot`.

use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::common::{
    beside, beside_in_a_thread, everywhere, give_way, guarded, in_tasks, meet, pause, runtime,
};
use crate::future::{Woken, block_on};
use fibra_sync::oneshot::error::{RecvError, RecvTimeoutError, TryRecvError};
use fibra_sync::oneshot::{Receiver, Sender, channel};

fn waker() -> (Arc<Woken>, Waker) {
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    (woken, waker)
}

fn poll<T>(receiver: &mut Receiver<T>, waker: &Waker) -> Poll<Result<T, RecvError>> {
    Pin::new(receiver).poll(&mut Context::from_waker(waker))
}

#[test]
fn a_value_sent_before_is_received() {
    everywhere(|| {
        let (sender, receiver) = channel();
        assert_eq!(sender.send("hello".to_owned()), Ok(()));
        assert_eq!(receiver.recv().as_deref(), Ok("hello"));
    });
}

#[test]
fn a_value_that_stays_on_its_thread_may_be_sent_to_oneself() {
    everywhere(|| {
        let (sender, mut receiver) = channel();
        sender.send(std::rc::Rc::new(1)).unwrap();
        assert_eq!(receiver.try_recv().map(|value| *value), Ok(1));
    });
}

#[test]
fn a_value_sent_later_wakes_the_receiver() {
    everywhere(|| {
        for _ in 0..50 {
            let (sender, receiver) = channel();
            let receiving = beside(move || receiver.recv());
            give_way();
            sender.send(1).unwrap();
            assert_eq!(receiving.join(), Ok(1));
        }
    });
}

#[test]
fn a_dropped_sender_ends_the_receive() {
    everywhere(|| {
        let (sender, receiver) = channel::<u32>();
        drop(sender);
        assert_eq!(receiver.recv(), Err(RecvError));
        let (sender, receiver) = channel::<u32>();
        let receiving = beside(move || receiver.recv());
        pause();
        drop(sender);
        assert_eq!(receiving.join(), Err(RecvError));
    });
}

#[test]
fn a_dropped_receiver_gives_the_value_back() {
    everywhere(|| {
        let (sender, receiver) = channel();
        drop(receiver);
        assert!(sender.is_closed());
        assert_eq!(sender.send(5), Err(5));
    });
}

#[test]
fn a_sender_waits_for_the_receivers_end() {
    everywhere(|| {
        for close in [true, false] {
            let (mut sender, mut receiver) = channel::<u32>();
            assert!(!sender.closed_timeout(Duration::from_millis(1)));
            assert!(!sender.closed_deadline(Instant::now()));
            let waiting = beside(move || {
                sender.closed();
                sender
            });
            pause();
            match close {
                true => {
                    receiver.close();
                    assert_eq!(waiting.join().send(1), Err(1));
                    assert_eq!(receiver.recv(), Err(RecvError));
                }
                false => {
                    drop(receiver);
                    assert!(waiting.join().closed_timeout(Duration::ZERO));
                }
            }
        }
    });
}

#[test]
fn a_close_keeps_what_was_sent() {
    everywhere(|| {
        let (sender, mut receiver) = channel();
        sender.send(3).unwrap();
        receiver.close();
        assert_eq!(receiver.try_recv(), Ok(3));
        let (sender, mut receiver) = channel();
        sender.send(4).unwrap();
        receiver.close();
        assert_eq!(receiver.recv(), Ok(4));
    });
}

#[test]
fn a_close_ends_what_was_not_sent() {
    let (sender, mut receiver) = channel::<u32>();
    receiver.close();
    receiver.close();
    assert!(sender.is_closed());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(sender.send(1), Err(1));
    receiver.close();
}

#[test]
fn a_try_tells_empty_from_closed() {
    everywhere(|| {
        let (sender, mut receiver) = channel();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        sender.send(1).unwrap();
        assert_eq!(receiver.try_recv(), Ok(1));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
        assert_eq!(receiver.recv(), Err(RecvError));
    });
}

#[test]
fn a_timed_receive_keeps_the_receiver() {
    everywhere(|| {
        let (sender, mut receiver) = channel();
        let begin = Instant::now();
        assert_eq!(receiver.recv_timeout(Duration::from_millis(10)), Err(RecvTimeoutError::Timeout));
        assert!(begin.elapsed() >= Duration::from_millis(10));
        assert_eq!(receiver.recv_deadline(begin), Err(RecvTimeoutError::Timeout));
        sender.send(1).unwrap();
        assert_eq!(receiver.recv_timeout(Duration::MAX), Ok(1));
        assert_eq!(receiver.recv_timeout(Duration::from_millis(10)), Err(RecvTimeoutError::Closed));
    });
}

#[test]
fn it_knows_whether_it_is_terminated_and_empty() {
    let (sender, mut receiver) = channel();
    assert!(!receiver.is_terminated() && receiver.is_empty());
    sender.send(1).unwrap();
    assert!(!receiver.is_terminated() && !receiver.is_empty());
    receiver.try_recv().unwrap();
    assert!(receiver.is_terminated() && receiver.is_empty());

    let (sender, mut receiver) = channel::<u32>();
    drop(sender);
    assert!(!receiver.is_terminated() && receiver.is_empty());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert!(receiver.is_terminated());

    let (_sender, mut receiver) = channel::<u32>();
    receiver.close();
    assert!(!receiver.is_terminated() && receiver.is_empty());
}

#[test]
fn a_poll_is_called_back_once() {
    let (sender, mut receiver) = channel();
    let (count, waker) = waker();
    assert!(poll(&mut receiver, &waker).is_pending());
    assert!(poll(&mut receiver, &waker).is_pending());
    sender.send(1).unwrap();
    assert_eq!(count.times(), 1);
    assert_eq!(poll(&mut receiver, &waker), Poll::Ready(Ok(1)));
    drop(receiver);
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn the_last_waker_is_called() {
    let (sender, mut receiver) = channel::<u32>();
    let (first, one) = waker();
    let (second, two) = waker();
    assert!(poll(&mut receiver, &one).is_pending());
    assert!(poll(&mut receiver, &two).is_pending());
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 3));
    drop(sender);
    assert_eq!((first.times(), second.times()), (0, 1));
    assert_eq!(poll(&mut receiver, &one), Poll::Ready(Err(RecvError)));
}

#[test]
fn a_dropped_receiver_drops_its_waker() {
    let (sender, mut receiver) = channel::<u32>();
    let (count, waker) = waker();
    assert!(poll(&mut receiver, &waker).is_pending());
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 2);
    drop(receiver);
    assert_eq!((Arc::strong_count(&count), count.times()), (1, 0));
    assert_eq!(sender.send(1), Err(1));
}

#[test]
fn a_polled_sender_hears_of_the_end() {
    for close in [true, false] {
        let (mut sender, mut receiver) = channel::<u32>();
        let (count, waker) = waker();
        let mut cx = Context::from_waker(&waker);
        assert!(sender.poll_closed(&mut cx).is_pending());
        match close {
            true => receiver.close(),
            false => drop(receiver),
        }
        assert_eq!(count.times(), 1);
        assert!(sender.poll_closed(&mut cx).is_ready());
        assert_eq!(sender.send(2), Err(2));
    }
    let (mut sender, receiver) = channel();
    let (count, waker) = waker();
    assert!(sender.poll_closed(&mut Context::from_waker(&waker)).is_pending());
    sender.send(1).unwrap();
    assert_eq!(receiver.recv(), Ok(1));
    drop(waker);
    assert_eq!((Arc::strong_count(&count), count.times()), (1, 0));
}

#[test]
fn the_last_waker_of_a_sender_is_called_and_the_former_let_go() {
    let (mut sender, receiver) = channel::<u32>();
    let (first, one) = waker();
    let (second, two) = waker();
    assert!(sender.poll_closed(&mut Context::from_waker(&one)).is_pending());
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (3, 2));
    assert!(sender.poll_closed(&mut Context::from_waker(&two)).is_pending());
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 3));
    drop(receiver);
    assert_eq!((first.times(), second.times()), (0, 1));
    assert!(sender.poll_closed(&mut Context::from_waker(&one)).is_ready());
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 2));
}

#[test]
fn both_sides_let_go_of_their_wakers_whichever_goes_first() {
    for sender_first in [true, false] {
        let (mut sender, mut receiver) = channel::<u32>();
        let (of_sender, one) = waker();
        let (of_receiver, two) = waker();
        assert!(sender.poll_closed(&mut Context::from_waker(&one)).is_pending());
        assert!(poll(&mut receiver, &two).is_pending());
        drop((one, two));
        match sender_first {
            true => drop((sender, receiver)),
            false => drop((receiver, sender)),
        }
        let called = (of_sender.times(), of_receiver.times());
        assert_eq!(called, if sender_first { (0, 1) } else { (1, 0) });
        assert_eq!((Arc::strong_count(&of_sender), Arc::strong_count(&of_receiver)), (1, 1));
    }
}

#[test]
fn a_poll_that_gives_the_outcome_terminates_the_receiver() {
    for way in ["sent", "dropped", "closed", "sent and closed"] {
        let (sender, mut receiver) = channel();
        let kept = match way {
            "sent" | "sent and closed" => sender.send(1).map(|()| None).unwrap(),
            "dropped" => {
                drop(sender);
                None
            }
            _ => Some(sender),
        };
        if way.ends_with("closed") {
            receiver.close();
        }
        let sent = way.starts_with("sent");
        assert_eq!((receiver.is_terminated(), receiver.is_empty()), (false, !sent), "{way}");
        let outcome = if sent { Ok(1) } else { Err(RecvError) };
        assert_eq!(poll(&mut receiver, Waker::noop()), Poll::Ready(outcome), "{way}");
        assert!(receiver.is_terminated() && receiver.is_empty(), "{way}");
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed), "{way}");
        receiver.close();
        assert_eq!(kept.map(|sender| sender.send(2)).unwrap_or(Err(2)), Err(2));
    }
}

#[test]
#[should_panic(expected = "after its outcome")]
fn a_poll_after_the_outcome_panics() {
    let (_sender, mut receiver) = channel::<u32>();
    receiver.close();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    _ = poll(&mut receiver, Waker::noop());
}

#[test]
fn a_future_waits_for_the_receivers_end() {
    let (mut sender, mut receiver) = channel();
    let woken = Arc::<Woken>::default();
    assert!(crate::future::poll(std::pin::pin!(sender.closed_async()), &woken).is_pending());
    {
        let mut closed = std::pin::pin!(sender.closed_async());
        assert!(crate::future::poll(closed.as_mut(), &woken).is_pending());
        receiver.close();
        assert_eq!(woken.times(), 1);
        assert!(crate::future::poll(closed.as_mut(), &woken).is_ready());
    }
    block_on(sender.closed_async());
    assert_eq!(sender.send(1), Err(1));
}

#[test]
fn a_sleep_may_follow_a_poll() {
    everywhere(|| {
        let (sender, mut receiver) = channel();
        let (count, waker) = waker();
        assert!(poll(&mut receiver, &waker).is_pending());
        assert_eq!(receiver.recv_timeout(Duration::from_millis(1)), Err(RecvTimeoutError::Timeout));
        drop(waker);
        assert_eq!(Arc::strong_count(&count), 1);
        let sending = beside(move || sender.send(9));
        assert_eq!(receiver.recv(), Ok(9));
        assert_eq!((sending.join(), count.times()), (Ok(()), 0));
    });
}

#[test]
fn a_future_receives_from_a_task() {
    guarded(|| {
        let runtime = runtime(2);
        for _ in 0..500 {
            let (sender, receiver) = channel();
            let task = runtime.handle().spawn(move || sender.send(1));
            assert_eq!(block_on(receiver), Ok(1));
            task.join().unwrap().unwrap();
        }
    });
}

#[test]
fn tasks_and_threads_meet() {
    for workers in [1, 2, 4] {
        guarded(|| {
            let runtime = runtime(workers);
            for round in 0..500 {
                let (sender, receiver) = channel();
                match round % 2 {
                    0 => {
                        let task = runtime.handle().spawn(move || receiver.recv());
                        sender.send(round).unwrap();
                        assert_eq!(task.join().unwrap(), Ok(round));
                    }
                    _ => {
                        let task = runtime.handle().spawn(move || sender.send(round));
                        assert_eq!(receiver.recv(), Ok(round));
                        task.join().unwrap().unwrap();
                    }
                }
            }
        });
    }
}

#[test]
fn each_of_thousands_that_wait_receives_its_own() {
    const TASKS: usize = 5000;
    in_tasks(|| {
        let (mut senders, receiving): (Vec<_>, Vec<_>) = (0..TASKS)
            .map(|number| {
                let (sender, receiver) = channel();
                ((number, sender), beside(move || receiver.recv()))
            })
            .unzip();
        let send = |senders: Vec<(usize, Sender<usize>)>| {
            senders.into_iter().rev().for_each(|(number, sender)| sender.send(number).unwrap());
        };
        let half = senders.split_off(TASKS / 2);
        let sending = beside_in_a_thread(move || send(half));
        send(senders);
        sending.join();
        assert!(receiving.into_iter().map(|side| side.join().unwrap()).eq(0..TASKS));
    });
}

/// A value that counts those alive.
struct Token(Arc<AtomicUsize>);

impl Token {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Token(Arc::clone(alive))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Ordering::SeqCst);
        assert_ne!(before, 0, "dropped twice");
    }
}

/// Many rounds of two sides that race, each given one half of a channel of tokens; none is left alive.
fn race(rounds: u32, send: fn(u32, Sender<Token>, Token), receive: fn(u32, Receiver<Token>)) {
    everywhere(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        for batch in 0..rounds / 100 {
            let (senders, receivers): (Vec<_>, Vec<_>) = (0..100).map(|_| channel()).unzip();
            let tokens = Arc::clone(&alive);
            let sending = beside(move || {
                for (index, sender) in senders.into_iter().enumerate() {
                    send(batch + index as u32, sender, Token::new(&tokens));
                    if index % 7 == 0 {
                        give_way();
                    }
                }
            });
            for (index, receiver) in receivers.into_iter().enumerate() {
                receive(batch + index as u32, receiver);
                if index % 5 == 0 {
                    give_way();
                }
            }
            sending.join();
            assert_eq!(alive.load(Ordering::SeqCst), 0);
        }
    });
}

#[test]
fn sent_and_timed_out_at_once_loses_nothing() {
    race(
        8_000,
        |_, sender, token| assert!(sender.send(token).is_ok()),
        |round, mut receiver| loop {
            match receiver.recv_timeout(Duration::from_micros(u64::from(round % 30))) {
                Ok(_) => break,
                Err(error) => assert_eq!(error, RecvTimeoutError::Timeout),
            }
        },
    );
}

#[test]
fn sent_and_closed_at_once_loses_nothing() {
    race(
        8_000,
        |_, sender, token| _ = sender.send(token),
        |_, mut receiver| {
            receiver.close();
            _ = receiver.try_recv();
        },
    );
}

#[test]
fn sent_and_dropped_at_once_loses_nothing() {
    race(
        8_000,
        |round, sender, token| match round % 3 {
            0 => drop(sender),
            _ => _ = sender.send(token),
        },
        |round, receiver| match round % 2 {
            0 => drop(receiver),
            _ => _ = receiver.recv(),
        },
    );
}

#[test]
fn polled_and_sent_at_once_loses_nothing() {
    race(
        8_000,
        |round, mut sender, token| {
            let (_, waker) = waker();
            if round % 2 == 0 {
                _ = sender.poll_closed(&mut Context::from_waker(&waker));
            }
            _ = sender.send(token);
        },
        |round, mut receiver| {
            let (_, waker) = waker();
            for _ in 0..round % 4 {
                if poll(&mut receiver, &waker).is_ready() {
                    return;
                }
            }
        },
    );
}

#[test]
fn closed_and_timed_out_at_once_loses_nothing() {
    race(
        4_000,
        |round, mut sender, token| {
            _ = sender.closed_timeout(Duration::from_micros(u64::from(round % 20)));
            _ = sender.send(token);
        },
        |round, mut receiver| match round % 3 {
            0 => receiver.close(),
            1 => drop(receiver),
            _ => _ = receiver.recv_timeout(Duration::from_micros(3)),
        },
    );
}

#[test]
fn cancelled_and_sent_at_once_loses_nothing() {
    in_tasks(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        for round in 0..1500 {
            let (sender, receiver) = channel();
            let receiving = fibra_runtime::spawn(move || receiver.recv().is_ok());
            (0..round % 3).for_each(|_| give_way());
            let canceller = {
                let task = receiving.task().clone();
                fibra_runtime::spawn(move || task.cancel())
            };
            let sent = sender.send(Token::new(&alive)).is_ok();
            if let Ok(received) = receiving.join() {
                assert_eq!(received, sent);
            }
            canceller.join().unwrap();
            assert_eq!(alive.load(Ordering::SeqCst), 0);
        }
    });
}

#[test]
fn a_cancel_ends_the_waits() {
    in_tasks(|| {
        let (mut sender, receiver) = channel::<u32>();
        let waiting = fibra_runtime::spawn(move || sender.closed());
        give_way();
        waiting.task().cancel();
        assert!(waiting.join().unwrap_err().is_cancelled());
        assert_eq!(receiver.recv(), Err(RecvError));

        let (sender, receiver) = channel::<u32>();
        let waiting = fibra_runtime::spawn(move || receiver.recv());
        give_way();
        waiting.task().cancel();
        assert!(waiting.join().unwrap_err().is_cancelled());
        assert!(sender.is_closed());
    });
}

#[test]
fn trying_sending_and_what_is_shielded_are_no_cancellation_points() {
    in_tasks(|| {
        let task = fibra_runtime::spawn(|| {
            fibra_runtime::task::current().cancel();
            let (sender, mut receiver) = channel();
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            sender.send(1).unwrap();
            assert_eq!(receiver.try_recv(), Ok(1));
            let (_sender, mut receiver) = channel::<u32>();
            let timed = fibra_runtime::task::shield(|| receiver.recv_timeout(Duration::from_millis(1)));
            assert_eq!(timed, Err(RecvTimeoutError::Timeout));
            receiver.recv().map(|_| unreachable!("it is a cancellation point"))
        });
        assert!(task.join().is_err_and(|error| error.is_cancelled()));
    });
}

/// The runner: a thread, or a task of it.
fn own_name() -> (ThreadId, Option<u64>) {
    let task = fibra_runtime::wait::in_task().then(|| fibra_runtime::task::current().id());
    (thread::current().id(), task)
}

/// A value that counts itself if its sender drops it.
struct Sent {
    by: (ThreadId, Option<u64>),
    dropped: Arc<AtomicUsize>,
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.dropped.fetch_add(usize::from(self.by == own_name()), Ordering::SeqCst);
    }
}

#[test]
fn a_sent_value_is_not_dropped_by_its_sender() {
    const ROUNDS: usize = 10_000;
    // Each meeting takes as long as a time slice, where it takes a change of threads beside busy ones.
    const TOGETHER: usize = 8;
    everywhere(|| {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..ROUNDS).map(|_| channel::<Sent>()).unzip();
        let came = Arc::new(AtomicUsize::new(0));
        let comes = Arc::clone(&came);
        let sending = beside(move || {
            let dropped = Arc::new(AtomicUsize::new(0));
            let refused = senders.into_iter().enumerate().filter_map(|(round, sender)| {
                let value = Sent { by: own_name(), dropped: Arc::clone(&dropped) };
                if round.is_multiple_of(TOGETHER) {
                    meet(&comes, round / TOGETHER);
                }
                sender.send(value).err()
            });
            let refused = refused.count();
            (refused, dropped)
        });
        let mut receivers = receivers.into_iter();
        for meeting in 0..ROUNDS / TOGETHER {
            let mut some: Vec<_> = receivers.by_ref().take(TOGETHER).collect();
            let mut polled = some.iter_mut().enumerate().filter(|(number, _)| !number.is_multiple_of(4));
            assert!(polled.all(|(_, one)| poll(one, Waker::noop()).is_pending()), "nothing was sent");
            meet(&came, meeting);
            (0..meeting % 64).for_each(|_| std::hint::spin_loop());
            for (number, receiver) in some.into_iter().enumerate() {
                (0..(meeting + number) % 4).for_each(|_| std::hint::spin_loop());
                drop(receiver);
            }
        }
        let (refused, dropped) = sending.join();
        assert_eq!(dropped.load(Ordering::SeqCst), refused, "of the others each is the receiver's to drop");
    });
}

#[test]
fn it_is_sent_and_shared_between_threads() {
    fn shared<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
    shared::<Sender<std::cell::Cell<u32>>>();
    shared::<Receiver<std::cell::Cell<u32>>>();
    assert_eq!(size_of::<Option<Receiver<u64>>>(), size_of::<Receiver<u64>>());
}
