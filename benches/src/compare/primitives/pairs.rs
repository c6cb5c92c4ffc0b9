//! Two tasks that pass something to and fro, or from one to the other.
//!
//! What the libraries put in for the traits is inlined, so that their calls stand where a user writes them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::library::Pair;
use crate::compare::worlds::Blocking;

/// A channel of some kind for messages of type `M`.
pub(super) trait Channel<M> {
    type Sender: Clone + Send + 'static;
    type Receiver: Send + 'static;

    fn open() -> (Self::Sender, Self::Receiver);
    fn send(sender: &Self::Sender, message: M);
    fn receive(receiver: &Self::Receiver) -> M;
}

/// A select over two channels.
pub(super) trait Choice: Channel<u64> {
    fn receive_either(one: &Self::Receiver, other: &Self::Receiver) -> u64;
}

/// What one task waits at until another has set it; set before the wait it stays set.
pub(super) trait Event: Send + Sync + 'static {
    fn new() -> Self;
    fn set(&self);
    fn wait(&self);
}

/// A mutex and a condition variable around whose turn it is.
pub(super) trait Turns: Send + Sync + 'static {
    fn new() -> Self;
    /// Waits until it is `mine`, then makes it the other's.
    fn pass(&self, mine: bool);
}

/// A channel for one message, made anew for each.
pub(super) trait Oneshot {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    fn open() -> (Self::Sender, Self::Receiver);
    fn send(sender: Self::Sender, message: u64);
    fn receive(receiver: Self::Receiver) -> u64;
}

/// What a call sends: a number, and where the reply is expected.
pub(super) type Request<O> = (u64, <O as Oneshot>::Sender);

/// One task sends and receives by turns, and never waits.
pub(super) fn pass_freely<C: Channel<u64>>(operations: u64) -> Duration {
    let (sender, receiver) = C::open();
    let begin = Instant::now();
    for number in 0..operations {
        C::send(&sender, number);
        assert_eq!(C::receive(&receiver), number);
    }
    begin.elapsed()
}

/// One task sets an event and waits at it by turns, and never has to.
pub(super) fn set_freely<E: Event>(operations: u64) -> Duration {
    let event = E::new();
    let begin = Instant::now();
    for _ in 0..operations {
        event.set();
        event.wait();
    }
    begin.elapsed()
}

/// One task makes, sends and receives one after the other, and never waits.
pub(super) fn reply_freely<O: Oneshot>(operations: u64) -> Duration {
    let begin = Instant::now();
    for number in 0..operations {
        let (sender, receiver) = O::open();
        O::send(sender, number);
        assert_eq!(O::receive(receiver), number);
    }
    begin.elapsed()
}

/// One task sends to one of two channels and receives from either by turns, and never waits.
pub(super) fn choose_freely<C: Choice>(operations: u64) -> Duration {
    let ((one, first), (_other, second)) = (C::open(), C::open());
    let begin = Instant::now();
    for number in 0..operations {
        C::send(&one, number);
        assert_eq!(C::receive_either(&first, &second), number);
    }
    begin.elapsed()
}

pub(super) fn ping_pong<P: Pair, C: Channel<u64>>(operations: u64) -> Duration {
    let (there, arrived) = C::open();
    let (back, returned) = C::open();
    let asking = move || {
        let begin = Instant::now();
        for number in 0..operations {
            C::send(&there, number);
            assert_eq!(C::receive(&returned), number);
        }
        begin.elapsed()
    };
    let answering = move || (0..operations).for_each(|_| C::send(&back, C::receive(&arrived)));
    // SAFETY: what lives over a suspension are ends of channels, which are `Send`, and counts; so in all of this file.
    unsafe { P::run(asking, answering) }
}

pub(super) fn set_to_and_fro<P: Pair, E: Event>(operations: u64) -> Duration {
    let (there, back) = (Arc::new(E::new()), Arc::new(E::new()));
    let (arrived, returned) = (Arc::clone(&there), Arc::clone(&back));
    let asking = move || {
        let begin = Instant::now();
        for _ in 0..operations {
            there.set();
            returned.wait();
        }
        begin.elapsed()
    };
    let answering = move || {
        for _ in 0..operations {
            arrived.wait();
            back.set();
        }
    };
    // SAFETY: as in `ping_pong`.
    unsafe { P::run(asking, answering) }
}

pub(super) fn take_turns<P: Pair, T: Turns>(operations: u64) -> Duration {
    let ours = Arc::new(T::new());
    let theirs = Arc::clone(&ours);
    let asking = move || {
        let begin = Instant::now();
        (0..operations).for_each(|_| ours.pass(false));
        begin.elapsed()
    };
    // SAFETY: as in `ping_pong`.
    unsafe { P::run(asking, move || (0..operations).for_each(|_| theirs.pass(true))) }
}

pub(super) fn call<P: Pair, C: Channel<Request<O>>, O: Oneshot>(operations: u64) -> Duration {
    let (there, arrived) = C::open();
    let asking = move || {
        let begin = Instant::now();
        for number in 0..operations {
            let (reply, returned) = O::open();
            C::send(&there, (number, reply));
            assert_eq!(O::receive(returned), number);
        }
        begin.elapsed()
    };
    let answering = move || {
        for _ in 0..operations {
            let (number, reply) = C::receive(&arrived);
            O::send(reply, number);
        }
    };
    // SAFETY: as in `ping_pong`.
    unsafe { P::run(asking, answering) }
}

/// From one producer.
pub(super) fn stream<P: Pair, C: Channel<u64>>(operations: u64) -> Duration {
    let (sender, receiver) = C::open();
    let consuming = move || {
        let begin = Instant::now();
        (0..operations).for_each(|number| assert_eq!(C::receive(&receiver), number));
        begin.elapsed()
    };
    // SAFETY: as in `ping_pong`.
    unsafe { P::run(consuming, move || (0..operations).for_each(|number| C::send(&sender, number))) }
}

/// From eight producers to the calling task.
pub(super) fn stream_from_eight<T: Blocking, C: Channel<u64>>(operations: u64) -> Duration {
    let (sender, receiver) = C::open();
    let begin = Instant::now();
    let producer = |number| {
        let share = operations / 8 + u64::from(number < operations % 8);
        let sender = sender.clone();
        move || (0..share).for_each(|number| C::send(&sender, number))
    };
    // SAFETY: as in `ping_pong`.
    let handles: Vec<_> = (0..8).map(|number| unsafe { T::spawn(producer(number)) }).collect();
    (0..operations).for_each(|_| _ = C::receive(&receiver));
    let elapsed = begin.elapsed();
    handles.into_iter().for_each(T::join);
    elapsed
}

/// From two producers, each with a channel of its own, to the calling task.
pub(super) fn choose<T: Blocking, C: Choice>(operations: u64) -> Duration {
    let ((one, first), (other, second)) = (C::open(), C::open());
    let begin = Instant::now();
    let producer = |sender: &C::Sender, share| {
        let sender = sender.clone();
        move || (0..share).for_each(|number| C::send(&sender, number))
    };
    let (half, rest) = (operations / 2, operations.div_ceil(2));
    // SAFETY: as in `ping_pong`.
    let handles = unsafe { [T::spawn(producer(&one, half)), T::spawn(producer(&other, rest))] };
    (0..operations).for_each(|_| _ = C::receive_either(&first, &second));
    let elapsed = begin.elapsed();
    handles.into_iter().for_each(T::join);
    elapsed
}
