//! Futures at the two ends of a channel, beside tasks and threads.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::channels::{KINDS, LIMITED, Tally, Value, anywhere, join_all, make};
use crate::common::{everywhere, give_way, pause, until};
use fibra_sync::channel::{RecvError, SendError, TryRecvError, bounded, never};
use fibra_sync::select;

/// Set by a wake.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A waker, and what it sets.
fn flag() -> (Arc<Flag>, Waker) {
    let flag = Arc::new(Flag::default());
    (Arc::clone(&flag), Waker::from(flag))
}

/// Polls once, with a waker that is ignored.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls `future` after each of its wakes until it is done.
fn block_on<F: Future>(future: F) -> F::Output {
    let (flag, waker) = flag();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        until(|| flag.0.swap(false, Ordering::SeqCst));
    }
}

#[test]
fn a_future_receives_what_others_send() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let sending = other.runs(move || (0..100).for_each(|number| sender.send(number).unwrap()));
            block_on(async {
                for number in 0..100 {
                    assert_eq!(receiver.recv_async().await, Ok(number));
                }
                assert_eq!(receiver.recv_async().await, Err(RecvError));
            });
            sending.join();
        }
    });
}

#[test]
fn a_future_sends_what_others_receive() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let receiving = other.runs(move || receiver.iter().eq(0..100));
            block_on(async {
                for number in 0..100 {
                    sender.send_async(number).await.unwrap();
                }
            });
            drop(sender);
            assert!(receiving.join());
        }
    });
}

#[test]
fn futures_send_to_futures() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<usize>(kind);
            let sending = other.starts_many(3, |_| {
                let sender = sender.clone();
                move || {
                    block_on(async {
                        for number in 0..50 {
                            sender.send_async(number).await.unwrap();
                        }
                    });
                }
            });
            drop(sender);
            let receiving = other.starts_many(3, |_| {
                let receiver = receiver.clone();
                move || {
                    block_on(async {
                        let mut sum = 0;
                        while let Ok(number) = receiver.recv_async().await {
                            sum += number;
                        }
                        sum
                    })
                }
            });
            join_all(sending);
            assert_eq!(join_all(receiving).into_iter().sum::<usize>(), 3 * 1225);
        }
    });
}

#[test]
fn a_future_is_woken_by_a_message_by_room_and_by_the_end() {
    everywhere(|| {
        for capacity in LIMITED {
            let (sender, receiver) = bounded(capacity);
            let (message, waker) = flag();
            let mut receiving = Box::pin(receiver.recv_async());
            assert!(receiving.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert!(!message.0.load(Ordering::SeqCst));
            sender.send(7).unwrap();
            assert!(message.0.load(Ordering::SeqCst));
            assert_eq!(poll(receiving.as_mut()), Poll::Ready(Ok(7)));
            drop(receiving);

            (0..capacity).for_each(|number| sender.send(number).unwrap());
            let (room, waker) = flag();
            let mut sending = pin!(sender.send_async(8));
            assert!(sending.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            receiver.recv().unwrap();
            assert!(room.0.load(Ordering::SeqCst));
            assert_eq!(poll(sending), Poll::Ready(Ok(())));

            while receiver.try_recv().is_ok() {}
            (0..capacity).for_each(|number| sender.send(number).unwrap());
            let (end, waker) = flag();
            let mut sending = pin!(sender.send_async(9));
            assert!(sending.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            drop(receiver);
            assert!(end.0.load(Ordering::SeqCst));
            assert_eq!(poll(sending), Poll::Ready(Err(SendError(9))));
        }
    });
}

#[test]
fn the_end_of_the_senders_wakes_every_future() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make::<()>(kind);
            let (end, waker) = flag();
            let mut receiving: Vec<_> = (0..10).map(|_| Box::pin(receiver.recv_async())).collect();
            for future in &mut receiving {
                assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            }
            drop(sender);
            assert!(end.0.load(Ordering::SeqCst));
            assert!(receiving.iter_mut().all(|future| poll(future.as_mut()) == Poll::Ready(Err(RecvError))));
        }
    });
}

#[test]
fn the_waker_of_the_last_poll_is_woken() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let ((first, waker), (second, another)) = (flag(), flag());
            let mut receiving = pin!(receiver.recv_async());
            assert!(receiving.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert!(receiving.as_mut().poll(&mut Context::from_waker(&another)).is_pending());
            sender.send(1).unwrap();
            assert_eq!([&first, &second].map(|flag| flag.0.load(Ordering::SeqCst)), [false, true]);
            assert_eq!(poll(receiving), Poll::Ready(Ok(1)));
        }
    });
}

#[test]
fn each_message_notifies_the_future_that_waits_longest() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let (flags, wakers): (Vec<_>, Vec<_>) = (0..10).map(|_| flag()).unzip();
            let mut receiving: Vec<_> = (0..10).map(|_| Box::pin(receiver.recv_async())).collect();
            for (future, waker) in receiving.iter_mut().zip(&wakers) {
                assert!(future.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
            }
            for (number, future) in receiving.iter_mut().enumerate() {
                sender.send(number).unwrap();
                let notified = flags.iter().filter(|flag| flag.0.load(Ordering::SeqCst)).count();
                assert_eq!((notified, flags[number].0.load(Ordering::SeqCst)), (number + 1, true));
                assert_eq!(poll(future.as_mut()), Poll::Ready(Ok(number)));
            }
        }
    });
}

#[test]
fn a_future_that_was_never_polled_does_nothing() {
    everywhere(|| {
        for kind in KINDS {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            drop(sender.send_async(tally.value()));
            drop(receiver.recv_async());
            assert_eq!((tally.dropped(), tally.alive()), (1, 0));
            assert_eq!(receiver.try_recv().map(drop), Err(TryRecvError::Empty));
        }
    });
}

#[test]
fn a_receive_that_is_dropped_gives_its_message_to_the_next() {
    everywhere(|| {
        for kind in KINDS {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            let mut doomed = Box::pin(receiver.recv_async());
            assert!(poll(doomed.as_mut()).is_pending());
            let mut next = pin!(receiver.recv_async());
            assert!(poll(next.as_mut()).is_pending());
            sender.send(tally.value()).unwrap();
            assert!(poll(next.as_mut()).is_pending(), "the message is the other one's");
            drop(doomed);
            let Poll::Ready(Ok(value)) = poll(next) else { panic!("{kind:?}: it is for the next one now") };
            assert_eq!(value.receive(), 0);
            tally.assert_settled();
        }
    });
}

#[test]
fn a_receive_that_is_dropped_before_its_message_comes_leaves_its_place() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let mut receiving: Vec<_> = (0..6).map(|_| Some(Box::pin(receiver.recv_async()))).collect();
            receiving.iter_mut().flatten().for_each(|future| assert!(poll(future.as_mut()).is_pending()));
            [0, 3, 5].into_iter().for_each(|number| drop(receiving[number].take()));
            for (number, future) in receiving.iter_mut().flatten().enumerate() {
                sender.send(number).unwrap();
                assert_eq!(poll(future.as_mut()), Poll::Ready(Ok(number)));
            }
        }
    });
}

#[test]
fn messages_of_receives_that_were_dropped_stay_in_their_order() {
    everywhere(|| {
        const MANY: usize = 12;
        let orders: [fn(usize) -> usize; 4] = [|n| n, |n| MANY - 1 - n, |n| n * 5 % MANY, |n| n * 7 % MANY];
        for (kind, order) in
            [Some(MANY + 1), None].into_iter().flat_map(|kind| orders.map(|order| (kind, order)))
        {
            let (sender, receiver) = make(kind);
            let mut receiving: Vec<_> = (0..MANY).map(|_| Some(Box::pin(receiver.recv_async()))).collect();
            receiving.iter_mut().flatten().for_each(|future| assert!(poll(future.as_mut()).is_pending()));
            (0..=MANY).for_each(|number| sender.send(number).unwrap());
            (0..MANY).for_each(|n| drop(receiving[order(n)].take()));
            assert_eq!(receiver.len(), MANY + 1);
            assert!(receiver.try_iter().eq(0..=MANY), "{kind:?}");
        }
    });
}

#[test]
fn a_rendezvous_keeps_one_message_for_a_notified_future() {
    everywhere(|| {
        let (sender, receiver) = bounded(0);
        assert!(sender.try_send(0).is_err());
        let mut receiving: Vec<_> = (0..2).map(|_| Box::pin(receiver.recv_async())).collect();
        assert!(receiving.iter_mut().all(|future| poll(future.as_mut()).is_pending()));
        assert_eq!((sender.try_send(1), sender.try_send(2).is_err()), (Ok(()), true));
        assert_eq!((receiver.len(), sender.is_full()), (1, true));
        assert_eq!(poll(receiving[0].as_mut()), Poll::Ready(Ok(1)));
        assert_eq!(sender.try_send(2), Ok(()));
        drop(receiving);
        assert_eq!((receiver.try_recv(), receiver.len()), (Ok(2), 0));
        assert!(sender.try_send(3).is_err());
    });
}

#[test]
fn a_select_sends_to_a_future_that_waits() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let receiving = other.runs(move || {
                block_on(async {
                    let mut sum = 0;
                    while let Ok(number) = receiver.recv_async().await {
                        sum += number;
                    }
                    sum
                })
            });
            for number in 0..100 {
                select! { send(sender, { give_way(); number }) -> sent => sent.unwrap() }
            }
            drop(sender);
            assert_eq!(receiving.join(), 4950, "{kind:?}");
        }
    });
}

#[test]
fn a_future_that_comes_to_a_select_lets_its_executor_run_while_the_message_is_made() {
    anywhere(|other| {
        let (sender, receiver) = bounded(0);
        let (go, going) = bounded(0);
        let waiting = other.runs(move || select! { send(sender, going.recv().unwrap()) -> sent => sent });
        let mut receiving = pin!(receiver.recv_async());
        // In either order: the poll returns though only this side makes the message possible.
        assert!(poll(receiving.as_mut()).is_pending());
        go.send(7).unwrap();
        assert_eq!(waiting.join(), Ok(()));
        assert_eq!(poll(receiving), Poll::Ready(Ok(7)));
    });
}

#[test]
fn a_future_may_go_away_while_a_select_makes_its_message() {
    anywhere(|other| {
        for capacity in LIMITED {
            let (sender, receiver) = bounded(capacity);
            let mut doomed = Some(Box::pin(receiver.recv_async()));
            assert!(doomed.as_mut().is_some_and(|future| poll(future.as_mut()).is_pending()));
            // By permits that wait all slots are reserved, or at a rendezvous the future.
            let permits = capacity.max(1);
            let (go, going) = bounded::<i32>(0);
            let chosen = Arc::new(AtomicUsize::new(0));
            let holding: Vec<_> = (0..permits)
                .map(|_| {
                    let (sender, going, chosen) = (sender.clone(), going.clone(), Arc::clone(&chosen));
                    let message = move || {
                        chosen.fetch_add(1, Ordering::SeqCst);
                        going.recv().unwrap()
                    };
                    other.runs(move || select! { send(sender, message()) -> sent => sent })
                })
                .collect();
            until(|| chosen.load(Ordering::SeqCst) == permits);
            drop(doomed.take());
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            (0..permits as i32).for_each(|number| go.send(number).unwrap());
            assert!(join_all(holding).into_iter().all(|sent| sent == Ok(())));
            let mut received: Vec<_> = receiver.try_iter().collect();
            received.sort_unstable();
            assert!(received.into_iter().eq(0..permits as i32), "capacity {capacity}");
            // The channel is as it was.
            assert_eq!((receiver.len(), sender.try_send(1).is_ok()), (0, capacity > 0));
        }
    });
}

#[test]
fn a_future_may_be_dropped_by_the_message_that_is_made_for_it() {
    everywhere(|| {
        let (sender, receiver) = bounded(0);
        let mut doomed = Some(Box::pin(receiver.recv_async()));
        assert!(doomed.as_mut().is_some_and(|future| poll(future.as_mut()).is_pending()));
        select! {
            send(sender, { drop(doomed.take()); 7 }) -> sent => sent.unwrap(),
        }
        assert_eq!(receiver.try_recv(), Ok(7));
    });
}

#[test]
fn a_select_that_gives_up_leaves_a_future_to_the_next() {
    everywhere(|| {
        let (sender, receiver) = bounded(0);
        let mut receiving = pin!(receiver.recv_async());
        assert!(poll(receiving.as_mut()).is_pending());
        let bomb = || -> i32 { std::panic::resume_unwind(Box::new("bomb")) };
        let caught = catch_unwind(AssertUnwindSafe(|| select! { send(sender, bomb()) -> _ => {} }));
        assert!(caught.is_err());
        assert!(poll(receiving.as_mut()).is_pending());
        assert_eq!(sender.try_send(7), Ok(()));
        assert_eq!(poll(receiving), Poll::Ready(Ok(7)));
    });
}

#[test]
fn receives_that_are_dropped_as_selects_send_lose_nothing() {
    anywhere(|other| {
        for kind in KINDS {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            let sending = other.starts_many(4, |_| {
                let (sender, making) = (sender.clone(), Arc::clone(&tally));
                move || {
                    for number in 0..50 {
                        let message = || {
                            (number % 3 == 0).then(give_way);
                            making.value()
                        };
                        select! { send(sender, message()) -> sent => sent.unwrap() }
                    }
                }
            });
            drop(sender);
            let mut received = 0;
            for round in 0.. {
                let mut future = Box::pin(receiver.recv_async());
                let polled = (0..=round % 3).find_map(|_| match poll(future.as_mut()) {
                    Poll::Ready(result) => Some(result),
                    Poll::Pending => {
                        give_way();
                        None
                    }
                });
                match polled {
                    Some(Ok(value)) => {
                        value.receive();
                        received += 1;
                    }
                    Some(Err(RecvError)) => break,
                    None => drop(future),
                }
            }
            join_all(sending);
            assert_eq!(received, 200, "{kind:?}: {tally:?}");
            tally.assert_settled();
        }
    });
}

#[test]
fn a_send_that_is_dropped_before_it_is_ready_has_not_sent_and_leaves_the_room_to_others() {
    everywhere(|| {
        for capacity in LIMITED.into_iter().filter(|capacity| *capacity > 0) {
            let tally = Tally::new();
            let (sender, receiver) = bounded(capacity);
            (0..capacity).for_each(|_| sender.send(tally.value()).unwrap());
            let mut sending: Vec<_> =
                (0..4).map(|_| Some(Box::pin(sender.send_async(tally.value())))).collect();
            sending.iter_mut().flatten().for_each(|future| assert!(poll(future.as_mut()).is_pending()));
            // One before there is room for it, and one after that.
            drop(sending[0].take());
            assert_eq!(tally.dropped(), 1);
            assert_eq!(receiver.recv().unwrap().receive(), 0);
            drop(sending[1].take());
            assert_eq!((tally.dropped(), receiver.len()), (2, capacity - 1));
            for future in sending.iter_mut().flatten() {
                assert!(matches!(poll(future.as_mut()), Poll::Ready(Ok(()))));
                receiver.recv().unwrap().receive();
            }
            drop(sending);
            receiver.try_iter().for_each(|value| _ = value.receive());
            assert_eq!((tally.received(), tally.dropped()), (capacity + 2, 2));
            tally.assert_settled();
        }
    });
}

#[test]
fn a_send_to_a_rendezvous_that_is_dropped_may_have_sent() {
    everywhere(|| {
        let (sender, receiver) = bounded(0);
        let mut sending: Vec<_> = (0..2).map(|number| Box::pin(sender.send_async(number))).collect();
        assert!(sending.iter_mut().all(|future| poll(future.as_mut()).is_pending()));
        assert_eq!(receiver.try_recv(), Ok(0));
        drop(sending);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    });
}

#[test]
fn a_forgotten_receive_delays_messages_and_the_end_until_the_next_operation_and_loses_nothing() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let mut forgotten = Box::pin(receiver.recv_async());
            assert!(poll(forgotten.as_mut()).is_pending());
            std::mem::forget(forgotten);
            let (woken, waker) = flag();
            let mut waiting = Box::pin(receiver.recv_async());
            assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            sender.send(7).unwrap();
            assert!(!woken.0.load(Ordering::SeqCst), "the forgotten one has the notification");
            match kind {
                // There is room for no other message.
                Some(0 | 1) => drop(sender),
                _ => {
                    sender.send(8).unwrap();
                    drop(sender);
                }
            }
            assert!(woken.0.load(Ordering::SeqCst), "{kind:?}");
            assert_eq!(poll(waiting.as_mut()), Poll::Ready(Ok(7)));
            assert!(matches!(receiver.recv(), Ok(8) | Err(RecvError)));
            assert_eq!(block_on(receiver.recv_async()), Err(RecvError));

            // An arrival finds the message as well, whatever way it receives.
            for way in 0..3 {
                let (sender, receiver) = make(kind);
                let mut forgotten = Box::pin(receiver.recv_async());
                assert!(poll(forgotten.as_mut()).is_pending());
                std::mem::forget(forgotten);
                sender.send(7).unwrap();
                assert_eq!(
                    match way {
                        0 => receiver.recv().ok(),
                        1 => receiver.try_recv().ok(),
                        _ => block_on(receiver.recv_async()).ok(),
                    },
                    Some(7)
                );
                drop(sender);
                assert_eq!(receiver.recv(), Err(RecvError));
            }
        }
    });
}

#[test]
fn receives_that_are_dropped_as_they_are_served_lose_nothing() {
    anywhere(|other| {
        for kind in KINDS {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            let making = Arc::clone(&tally);
            let sending = other.runs(move || {
                for number in 0..100 {
                    sender.send(making.value()).unwrap();
                    (number % 3 == 0).then(give_way);
                }
            });
            let staying = receiver.clone();
            let receiving = other.runs(move || staying.iter().map(Value::receive).count());
            let mut received = 0;
            for round in 0.. {
                let mut future = Box::pin(receiver.recv_async());
                let polled = (0..=round % 3).find_map(|_| {
                    let polled = poll(future.as_mut());
                    give_way();
                    match polled {
                        Poll::Ready(result) => Some(result),
                        Poll::Pending => None,
                    }
                });
                match polled {
                    Some(Ok(value)) => {
                        value.receive();
                        received += 1;
                    }
                    Some(Err(RecvError)) => break,
                    None => drop(future),
                }
            }
            sending.join();
            assert_eq!(received + receiving.join(), 100, "{kind:?}: {tally:?}");
            tally.assert_settled();
        }
    });
}

#[test]
fn sends_that_are_dropped_as_they_are_served_are_sent_if_they_were_ready() {
    anywhere(|other| {
        for capacity in LIMITED {
            let tally = Tally::new();
            let (sender, receiver) = bounded(capacity);
            let receiving = other.runs(move || receiver.iter().map(Value::receive).count());
            let mut sent = 0;
            for round in 0..200 {
                let mut future = Box::pin(sender.send_async(tally.value()));
                for _ in 0..=round % 3 {
                    if let Poll::Ready(result) = poll(future.as_mut()) {
                        result.unwrap();
                        sent += 1;
                        break;
                    }
                    give_way();
                }
            }
            drop(sender);
            let received = receiving.join();
            // Of a rendezvous the dropped ones may have sent too.
            assert!(received == sent || (capacity == 0 && received > sent), "{received} {sent}");
            assert_eq!((tally.received(), tally.dropped()), (received, 200 - received));
            tally.assert_settled();
        }
    });
}

#[test]
fn a_future_at_never_stays_pending() {
    let never = never::<i32>();
    let mut receiving = pin!(never.recv_async());
    assert!(poll(receiving.as_mut()).is_pending());
    pause();
    assert!(poll(receiving).is_pending());
}

#[test]
fn the_end_comes_after_the_last_message_whether_its_future_is_polled_or_dropped() {
    anywhere(|other| {
        for (kind, leaves) in KINDS.into_iter().flat_map(|kind| [(kind, true), (kind, false)]) {
            let (sender, receiver) = make(kind);
            let mut notified = Some(Box::pin(receiver.recv_async()));
            assert!(notified.as_mut().is_some_and(|future| poll(future.as_mut()).is_pending()));
            sender.send(7).unwrap();
            drop(sender);
            match leaves {
                true => drop(notified.take()),
                false => {
                    assert_eq!(notified.take().map(|mut it| poll(it.as_mut())), Some(Poll::Ready(Ok(7))))
                }
            }
            let receiving = other.starts_many(3, |_| {
                let receiver = receiver.clone();
                move || receiver.iter().count()
            });
            assert_eq!(join_all(receiving).into_iter().sum::<usize>(), usize::from(leaves));
            assert_eq!(block_on(receiver.recv_async()), Err(RecvError));
        }
    });
}
