//! Places that are reserved before the message is made.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use crate::channels::{KEEPING, anywhere, join_all, make, ms};
use crate::common::{everywhere, give_way, in_tasks};
use crate::future::{Woken, poll as poll_with};
use fibra_runtime::{self as fibra, block_on};
use fibra_sync::channel::{Permit, SendError, SendTimeoutError, TryRecvError, TrySendError, bounded};

/// A permit moves between threads with its borrow.
fn _moves<T: Send>(permit: Permit<'_, T>) -> impl Send {
    permit
}

/// Polls once, with a waker that is ignored.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    poll_with(future, &Arc::default())
}

#[test]
fn a_permit_keeps_a_place_and_sends_into_it() {
    everywhere(|| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            let permits: Vec<_> = (0..kind.unwrap_or(100)).map(|_| sender.reserve().unwrap()).collect();
            assert_eq!((sender.is_full(), receiver.len()), (kind.is_some(), 0));
            assert_eq!(sender.try_reserve().is_err(), kind.is_some());
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            let count = permits.len();
            permits.into_iter().enumerate().for_each(|(number, permit)| permit.send(number).unwrap());
            assert!(receiver.try_iter().eq(0..count));
        }
    });
}

#[test]
fn a_dropped_permit_gives_its_place_to_the_longest_waiting_sender() {
    anywhere(|other| {
        let (sender, receiver) = bounded(1);
        let permit = sender.reserve().unwrap();
        let sending = {
            let sender = sender.clone();
            other.runs(move || sender.send(1))
        };
        give_way();
        drop(permit);
        assert_eq!((receiver.recv(), sending.join()), (Ok(1), Ok(())));
        assert!(sender.try_reserve().is_ok());
    });
}

#[test]
fn a_reservation_waits_for_room_in_the_order_of_arrival() {
    anywhere(|other| {
        let (sender, receiver) = bounded(1);
        sender.send(0).unwrap();
        let mut reserving = pin!(sender.reserve_async());
        assert!(poll(reserving.as_mut()).is_pending());
        let behind = {
            let sender = sender.clone();
            other.runs(move || sender.reserve().unwrap().send(2))
        };
        give_way();
        assert_eq!((receiver.recv(), sender.is_full()), (Ok(0), true));
        let Poll::Ready(Ok(permit)) = poll(reserving) else { panic!("it has the place") };
        permit.send(1).unwrap();
        assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Ok(2)));
        behind.join().unwrap();
    });
}

#[test]
fn a_reservation_that_is_dropped_passes_its_place_on() {
    everywhere(|| {
        let (sender, receiver) = bounded(1);
        sender.send(0).unwrap();
        let mut doomed = Box::pin(sender.reserve_async());
        assert!(poll(doomed.as_mut()).is_pending());
        let woken = Arc::<Woken>::default();
        let mut next = pin!(sender.reserve_async());
        assert!(poll_with(next.as_mut(), &woken).is_pending());
        assert_eq!(receiver.recv(), Ok(0));
        assert!(woken.times() == 0, "the place is the other one's");
        drop(doomed);
        assert_eq!(woken.times(), 1);
        let Poll::Ready(Ok(permit)) = poll(next) else { panic!("it is for the next one now") };
        permit.send(1).unwrap();
        assert_eq!(receiver.recv(), Ok(1));
    });
}

#[test]
fn it_fails_at_the_deadline_and_at_the_end_of_the_receivers() {
    anywhere(|other| {
        let (sender, receiver) = bounded(1);
        let permit = sender.reserve().unwrap();
        assert!(matches!(sender.reserve_timeout(ms(1)), Err(SendTimeoutError::Timeout(()))));
        assert!(matches!(sender.reserve_deadline(Instant::now()), Err(SendTimeoutError::Timeout(()))));
        let waiting = {
            let sender = sender.clone();
            other.runs(move || sender.reserve().map(drop))
        };
        let mut reserving = pin!(sender.reserve_async());
        assert!(poll(reserving.as_mut()).is_pending());
        drop(receiver);
        assert_eq!(waiting.join(), Err(SendError(())));
        assert!(matches!(poll(reserving), Poll::Ready(Err(SendError(())))));
        assert_eq!(permit.send(7), Err(SendError(7)));
        assert!(matches!(sender.try_reserve(), Err(TrySendError::Disconnected(()))));
        assert!(matches!(sender.reserve_timeout(ms(1)), Err(SendTimeoutError::Disconnected(()))));
    });
}

#[test]
fn a_cancelled_reservation_has_reserved_nothing() {
    in_tasks(|| {
        let (sender, receiver) = bounded(1);
        sender.send(0).unwrap();
        let waiting = {
            let sender = sender.clone();
            fibra::spawn(move || sender.reserve().map(drop))
        };
        give_way();
        waiting.cancel();
        assert!(waiting.join().unwrap_err().is_cancelled());
        assert_eq!((receiver.recv(), sender.try_send(1)), (Ok(0), Ok(())));
    });
}

#[test]
fn a_receiver_waits_beside_permits_and_gets_the_message_that_is_sent_first() {
    anywhere(|other| {
        let (sender, receiver) = bounded(2);
        let (first, second) = (sender.reserve().unwrap(), sender.reserve().unwrap());
        let receiving = other.runs(move || (receiver.recv(), receiver.recv()));
        give_way();
        second.send(2).unwrap();
        first.send(1).unwrap();
        assert_eq!(receiving.join(), (Ok(2), Ok(1)));
    });
}

#[test]
fn reservations_beside_sends_lose_nothing() {
    anywhere(|other| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            let sending = other.starts_many(4, |side| {
                let sender = sender.clone();
                move || {
                    for number in 0..50 {
                        match (side + number) % 4 {
                            0 => sender.reserve().unwrap().send(1).unwrap(),
                            1 => block_on(async { sender.reserve_async().await.unwrap().send(1).unwrap() }),
                            2 => sender.send(1).unwrap(),
                            _ => {
                                drop(sender.reserve().unwrap());
                                block_on(sender.send_async(1)).unwrap();
                            }
                        }
                    }
                }
            });
            drop(sender);
            assert_eq!(receiver.iter().sum::<i32>(), 200);
            join_all(sending);
        }
    });
}

#[test]
fn a_rendezvous_has_no_place_to_reserve() {
    let (sender, _receiver) = bounded::<i32>(0);
    let panics = [
        catch_unwind(AssertUnwindSafe(|| drop(sender.reserve()))),
        catch_unwind(AssertUnwindSafe(|| drop(sender.try_reserve()))),
        catch_unwind(AssertUnwindSafe(|| drop(sender.reserve_timeout(ms(1))))),
        catch_unwind(AssertUnwindSafe(|| drop(block_on(sender.reserve_async())))),
    ];
    for panic in panics {
        let message = panic.unwrap_err();
        assert_eq!(
            *message.downcast_ref::<&str>().unwrap(),
            "a rendezvous has no place to reserve: use `send`"
        );
    }
}
