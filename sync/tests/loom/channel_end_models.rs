//! The ends of a channel, its growth and its hints, by what users call.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use loom::cell::UnsafeCell;
use loom::thread;

use crate::channel::error::{RecvError, RecvTimeoutError, SendTimeoutError};
use crate::channel::{Receiver, Sender, ends};
use crate::primitive::check_bounded;
use crate::wait::{Tickets, over};

/// How many messages there are, made and not dropped. Of std: a count of the model, not of the modelled.
#[derive(Clone)]
struct Ledger(Arc<AtomicU32>);

/// Dropped once, after all that its maker did.
struct Message {
    number: u32,
    body: UnsafeCell<()>,
    ledger: Ledger,
}

impl Ledger {
    fn new() -> Self {
        Ledger(Arc::new(AtomicU32::new(0)))
    }

    fn message(&self, number: u32) -> Message {
        self.0.fetch_add(1, Ordering::Relaxed);
        Message { number, body: UnsafeCell::new(()), ledger: self.clone() }
    }

    fn assert_even(&self) {
        assert_eq!(self.0.load(Ordering::Relaxed), 0, "each message is dropped, once");
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.ledger.0.fetch_sub(1, Ordering::Relaxed);
        if !std::thread::panicking() {
            self.body.with_mut(|_| ());
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({})", self.number)
    }
}

/// A channel; each of loom's objects is made by its first use.
pub(crate) fn channel<T>(capacity: Option<usize>) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = ends(capacity);
    assert!(receiver.try_recv().is_err());
    drop((sender.clone(), receiver.clone()));
    (sender, receiver)
}

/// Finds: the last sender leaves as a receiver goes to sleep, and the receiver sleeps on; a message before that end that is
/// lost.
#[test]
fn a_receiver_that_goes_to_sleep_hears_of_the_end_of_the_senders() {
    check_bounded(3, || {
        let (sender, receiver) = channel(Some(1));
        let sends = thread::spawn(move || sender.send(7).unwrap());
        assert_eq!(receiver.recv(), Ok(7));
        assert!(receiver.recv().is_err());
        sends.join().unwrap();
    });
}

/// Finds: an end that comes before the last sender has left, or never; a write before it that the receiver does not see
/// after it.
#[test]
fn the_last_of_the_senders_ends_the_channel_for_all_of_them() {
    check_bounded(2, || {
        let (sender, receiver) = channel::<u32>(Some(1));
        let done = Arc::new([(); 2].map(UnsafeCell::new));
        let others = [0, 1].map(|index| {
            let (sender, done) = (sender.clone(), Arc::clone(&done));
            thread::spawn(move || {
                done[index].with_mut(|_| ());
                drop(sender);
            })
        });
        drop(sender);
        assert!(receiver.recv().is_err());
        done.iter().for_each(|done| done.with_mut(|_| ()));
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// Finds: a sender that sleeps on though the last receiver has gone; a message that is both returned and dropped, or neither;
/// a message in the channel that is dropped twice.
#[test]
fn a_sender_that_goes_to_sleep_hears_of_the_end_of_the_receivers() {
    for capacity in [0, 1] {
        let model = move || {
            let ledger = Ledger::new();
            let (sender, receiver) = channel(Some(capacity));
            for number in 0..capacity as u32 {
                sender.send(ledger.message(number)).unwrap();
            }
            let ends = thread::spawn(move || drop(receiver));
            let refused = sender.send(ledger.message(7)).unwrap_err();
            assert_eq!(refused.into_inner().number, 7);
            ends.join().unwrap();
            drop(sender);
            ledger.assert_even();
        };
        check_bounded(3, model);
    }
}

/// Finds: a message that is sent beside the end of the receivers, and is neither received nor dropped.
#[test]
fn a_message_beside_the_end_of_the_receivers_is_dropped_or_comes_back() {
    for capacity in [Some(1), None] {
        let model = move || {
            let ledger = Ledger::new();
            let (sender, receiver) = channel(capacity);
            let ends = thread::spawn(move || drop(receiver));
            match sender.try_send(ledger.message(1)) {
                Ok(()) => {}
                Err(refused) => assert!(refused.is_disconnected()),
            }
            ends.join().unwrap();
            ledger.assert_even();
            assert!(sender.try_send(ledger.message(2)).is_err_and(|refused| refused.is_disconnected()));
        };
        check_bounded(3, model);
    }
}

/// Finds: two endpoints that end at once and both drop what is left, or neither, or free the channel too early.
#[test]
fn both_ends_go_at_once() {
    check_bounded(3, || {
        let ledger = Ledger::new();
        let (sender, receiver) = channel(Some(2));
        sender.send(ledger.message(1)).unwrap();
        let receives = thread::spawn(move || receiver.try_recv().ok());
        drop(sender);
        drop(receives.join().unwrap());
        ledger.assert_even();
    });
}

/// Finds: an end that a future delays, since it has a message that it may give back, and that wakes no sleeper when it
/// comes.
#[test]
fn an_end_that_a_future_holds_up_is_told_when_it_comes() {
    for keeps in [false, true] {
        let model = move || {
            let (sender, receiver) = channel(Some(1));
            let polls = Arc::new(Tickets::new());
            let waker = Waker::from(Arc::clone(&polls));
            let mut context = Context::from_waker(&waker);
            let [mut given, mut waits] = [(); 2].map(|()| Box::pin(receiver.recv_async()));
            assert!(given.as_mut().poll(&mut context).is_pending());
            assert!(waits.as_mut().poll(&mut context).is_pending());
            sender.send(7).unwrap();
            polls.take();
            let closes = thread::spawn(move || drop(sender));
            if keeps {
                assert_eq!(given.as_mut().poll(&mut context), Poll::Ready(Ok(7)));
            }
            drop(given);
            polls.take();
            assert_eq!(
                waits.as_mut().poll(&mut context),
                Poll::Ready(if keeps { Err(RecvError) } else { Ok(7) })
            );
            closes.join().unwrap();
            assert_eq!(receiver.recv(), Err(RecvError));
        };
        check_bounded(3, model);
    }
}

/// Finds: an end that meets a sleeper at its deadline, and a message that is lost or there twice.
#[test]
fn the_end_meets_the_deadlines_of_sleepers() {
    check_bounded(3, || {
        let ledger = Ledger::new();
        let (sender, receiver) = channel(Some(0));
        let ends = thread::spawn(move || drop(receiver));
        let refused = sender.send_deadline(ledger.message(1), over()).unwrap_err();
        let is_told = matches!(refused, SendTimeoutError::Disconnected(_));
        assert_eq!(refused.into_inner().number, 1);
        ends.join().unwrap();
        assert!(!is_told || sender.try_send(ledger.message(2)).unwrap_err().is_disconnected());
        ledger.assert_even();
    });
    check_bounded(3, || {
        let (sender, receiver) = channel::<u32>(Some(1));
        let ends = thread::spawn(move || drop(sender));
        let missed = receiver.recv_deadline(over()).unwrap_err();
        ends.join().unwrap();
        assert!(missed == RecvTimeoutError::Timeout || receiver.try_recv().is_err());
        assert_eq!(receiver.recv_deadline(over()), Err(RecvTimeoutError::Disconnected));
    });
}

/// Finds: a waiter at its deadline that is given a message, or from which one is taken, and that goes before that wake has
/// landed; a message that is lost so.
#[test]
fn a_waiter_served_at_its_deadline_stays_until_its_wake() {
    check_bounded(3, || {
        let ledger = Ledger::new();
        let (sender, receiver) = channel(Some(1));
        let receives = thread::spawn(move || {
            let received = receiver.recv_deadline(over()).is_ok();
            (receiver, received)
        });
        sender.try_send(ledger.message(1)).unwrap();
        let (receiver, received) = receives.join().unwrap();
        assert!(received != receiver.try_recv().is_ok());
        ledger.assert_even();
    });
    check_bounded(3, || {
        let ledger = Ledger::new();
        let (sender, receiver) = channel(Some(0));
        let sends = {
            let ledger = ledger.clone();
            thread::spawn(move || sender.send_deadline(ledger.message(1), over()).is_ok())
        };
        let received = receiver.try_recv().is_ok();
        assert_eq!(sends.join().unwrap(), received);
        ledger.assert_even();
    });
}

/// Finds: two senders that bring a block to a queue without one; a message that is lost or out of order, or a block that is
/// freed while it holds one.
#[test]
fn two_first_senders_make_the_queue_grow() {
    check_bounded(2, || grows_by(0));
}

/// Finds: two senders at the end of a full block, where the queue has a spent block: a message that is lost or out of order.
#[test]
fn two_senders_make_the_queue_grow_at_the_end_of_a_block() {
    check_bounded(2, || grows_by(32));
}

/// Two senders beside a receiver, after `before` messages.
fn grows_by(before: u32) {
    let ledger = Ledger::new();
    let (sender, receiver) = channel(None);
    for number in 0..before {
        sender.send(ledger.message(number)).unwrap();
        // All but the last one.
        if number > 0 {
            drop(receiver.recv().unwrap());
        }
    }
    let other = {
        let (sender, ledger) = (sender.clone(), ledger.clone());
        thread::spawn(move || sender.send(ledger.message(100)).unwrap())
    };
    sender.send(ledger.message(200)).unwrap();
    drop(sender);
    let received: Vec<_> = receiver.iter().map(|message| message.number).collect();
    other.join().unwrap();
    let (old, mut new) = received.split_at(usize::from(before > 0));
    if let Some(old) = old.first() {
        assert_eq!(*old, before - 1);
    }
    if new == [200, 100] {
        new = &[100, 200];
    }
    assert_eq!(new, [100, 200]);
    drop(receiver);
    ledger.assert_even();
}

/// Finds: a receiver that trusts what was said of an empty channel, and does not find what was sent after.
#[test]
fn a_hint_that_is_late_hides_no_message() {
    check_bounded(3, || {
        let (sender, receiver) = channel(None);
        let sends = thread::spawn(move || {
            sender.send(1).unwrap();
            sender
        });
        let early = receiver.try_recv().ok();
        let sender = sends.join().unwrap();
        let late = receiver.recv_deadline(over()).ok();
        assert_eq!(early.or(late), Some(1));
        assert_eq!(receiver.recv_deadline(over()), Err(RecvTimeoutError::Timeout));
        drop(sender);
        assert!(receiver.recv().is_err());
    });
}

/// Finds: messages that are lost or out of order, where the two endpoints meet, back off and sleep in turns.
#[test]
fn sides_that_meet_lose_nothing() {
    check_bounded(2, || {
        let (sender, receiver) = channel(None);
        let sends = thread::spawn(move || (1..=3).for_each(|number| sender.send(number).unwrap()));
        assert!(receiver.iter().eq(1..=3));
        sends.join().unwrap();
    });
}

/// Finds: an upgrade that counts a sender after the last one has ended the channel, and whose message is refused or lost.
#[test]
fn an_upgrade_beside_the_end_of_the_senders_sends_or_fails() {
    check_bounded(3, || {
        let (sender, receiver) = channel(Some(1));
        let weak = sender.downgrade();
        let upgrades = thread::spawn(move || weak.upgrade().map(|sender| sender.send(7).unwrap()).is_some());
        drop(sender);
        let received = receiver.recv();
        assert_eq!(upgrades.join().unwrap(), received == Ok(7));
        assert!(receiver.recv().is_err());
    });
}

/// Finds: room that a dropped reservation does not pass on; a place that is given to two; a message that is lost between the
/// grant and the send.
#[test]
fn a_reservation_that_is_dropped_beside_the_receive_passes_its_place_on() {
    check_bounded(2, || {
        let (sender, receiver) = channel(Some(1));
        sender.send(1).unwrap();
        let sends = {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut doomed = Box::pin(sender.reserve_async());
                _ = doomed.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                drop(doomed);
                sender.reserve().unwrap().send(2).unwrap();
            })
        };
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(receiver.recv(), Ok(2));
        sends.join().unwrap();
        assert!(sender.try_send(3).is_ok());
    });
}
