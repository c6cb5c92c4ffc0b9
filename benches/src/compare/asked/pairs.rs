//! Two tasks that pass messages to and fro, or one way.
//!
//! What the libraries put in for the traits is inlined, so that their calls stand where a user writes them.

use std::sync::Arc;
use std::time::Instant;

use super::super::{Job, Tasks};
use super::{Asked, pair, task};

/// A channel of some kind for messages of type `M`.
pub(in crate::compare) trait Channel<M>: 'static {
    type Sender: Clone + Send + Sync + 'static;
    type Receiver: Send + 'static;

    fn open() -> (Self::Sender, Self::Receiver);
    fn send(sender: &Self::Sender, message: M) -> later!(());
    fn receive(receiver: &mut Self::Receiver) -> later!(M);
}

/// A select over two channels.
pub(in crate::compare) trait Choice: Channel<u64> {
    fn receive_either(one: &mut Self::Receiver, other: &mut Self::Receiver) -> later!(u64);
}

/// What one task waits at until another has set it; set before the wait it stays set.
pub(in crate::compare) trait Event: Send + Sync + 'static {
    fn new() -> Self;
    fn set(&self);
    fn wait(&self) -> later!(());
}

/// A mutex and a condition variable around whose turn it is.
pub(in crate::compare) trait Turns: Send + Sync + 'static {
    fn new() -> Self;
    /// Waits until it is `mine`, then passes the turn on.
    fn pass(&self, mine: bool) -> later!(());
}

/// A channel for one message, made anew for each.
pub(in crate::compare) trait Oneshot: 'static {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    fn open() -> (Self::Sender, Self::Receiver);
    fn send(sender: Self::Sender, message: u64);
    fn receive(receiver: Self::Receiver) -> later!(u64);
}

/// What a call sends: a number, and where the reply is expected.
pub(in crate::compare) type Request<O> = (u64, <O as Oneshot>::Sender);

/// One task sends and receives by turns, and never waits.
pub(super) fn pass_freely<C: Channel<u64>>(operations: u64) -> Asked {
    task(job!({
        let (sender, mut receiver) = C::open();
        timed!(operations, |number| {
            wait!(C::send(&sender, number));
            assert_eq!(wait!(C::receive(&mut receiver)), number);
        })
    }))
}

/// One task sets an event and waits at it by turns, and never has to.
pub(super) fn set_freely<E: Event>(operations: u64) -> Asked {
    task(job!({
        let event = E::new();
        timed!(operations, |_| {
            event.set();
            wait!(event.wait());
        })
    }))
}

/// One task makes, sends and receives by turns, and never waits.
pub(super) fn reply_freely<O: Oneshot>(operations: u64) -> Asked {
    task(job!({
        timed!(operations, |number| {
            let (sender, receiver) = O::open();
            O::send(sender, number);
            assert_eq!(wait!(O::receive(receiver)), number);
        })
    }))
}

/// One task sends to one of two channels and receives from either by turns, and never waits.
pub(super) fn choose_freely<C: Choice>(operations: u64) -> Asked {
    task(job!({
        let ((one, mut first), (_other, mut second)) = (C::open(), C::open());
        timed!(operations, |number| {
            wait!(C::send(&one, number));
            assert_eq!(wait!(C::receive_either(&mut first, &mut second)), number);
        })
    }))
}

pub(super) fn ping_pong<C: Channel<u64>>(operations: u64) -> Asked {
    let (there, mut arrived) = C::open();
    let (back, mut returned) = C::open();
    let asking = job!({
        timed!(operations, |number| {
            wait!(C::send(&there, number));
            assert_eq!(wait!(C::receive(&mut returned)), number);
        })
    });
    let answering = job!({
        for _ in 0..operations {
            let number = wait!(C::receive(&mut arrived));
            wait!(C::send(&back, number));
        }
    });
    pair(asking, answering)
}

pub(super) fn set_to_and_fro<E: Event>(operations: u64) -> Asked {
    let (there, back) = (Arc::new(E::new()), Arc::new(E::new()));
    let (arrived, returned) = (Arc::clone(&there), Arc::clone(&back));
    let asking = job!({
        timed!(operations, |_| {
            there.set();
            wait!(returned.wait());
        })
    });
    let answering = job!({
        for _ in 0..operations {
            wait!(arrived.wait());
            back.set();
        }
    });
    pair(asking, answering)
}

pub(super) fn take_turns<T: Turns>(operations: u64) -> Asked {
    let ours = Arc::new(T::new());
    let theirs = Arc::clone(&ours);
    let asking = job!({ timed!(operations, |_| wait!(ours.pass(false))) });
    pair(asking, job!({ _ = timed!(operations, |_| wait!(theirs.pass(true))) }))
}

pub(super) fn call<C: Channel<Request<O>>, O: Oneshot>(operations: u64) -> Asked {
    let (there, mut arrived) = C::open();
    let asking = job!({
        timed!(operations, |number| {
            let (reply, returned) = O::open();
            wait!(C::send(&there, (number, reply)));
            assert_eq!(wait!(O::receive(returned)), number);
        })
    });
    let answering = job!({
        for _ in 0..operations {
            let (number, reply) = wait!(C::receive(&mut arrived));
            O::send(reply, number);
        }
    });
    pair(asking, answering)
}

/// One producer sends to one consumer.
pub(super) fn stream<C: Channel<u64>>(operations: u64) -> Asked {
    let (sender, mut receiver) = C::open();
    let consuming =
        job!({ timed!(operations, |number| assert_eq!(wait!(C::receive(&mut receiver)), number)) });
    pair(consuming, produce::<C>(sender, operations))
}

/// Eight producers send to the calling task.
pub(super) fn stream_from_eight<T: Tasks, C: Channel<u64>>(operations: u64) -> Asked {
    task(job!({
        let (sender, mut receiver) = C::open();
        let begin = Instant::now();
        let share = |number| operations / 8 + u64::from(number < operations % 8);
        let producer = |number| T::spawn(produce::<C>(sender.clone(), share(number)));
        let handles: Vec<_> = (0..8).map(producer).collect();
        for _ in 0..operations {
            wait!(C::receive(&mut receiver));
        }
        let elapsed = begin.elapsed();
        join_all!(T, handles);
        elapsed
    }))
}

/// Two producers, each with a channel of its own, send to the calling task.
pub(super) fn choose<T: Tasks, C: Choice>(operations: u64) -> Asked {
    task(job!({
        let ((one, mut first), (other, mut second)) = (C::open(), C::open());
        let begin = Instant::now();
        let (half, rest) = (operations / 2, operations.div_ceil(2));
        let handles =
            [T::spawn(produce::<C>(one.clone(), half)), T::spawn(produce::<C>(other.clone(), rest))];
        for _ in 0..operations {
            wait!(C::receive_either(&mut first, &mut second));
        }
        let elapsed = begin.elapsed();
        join_all!(T, handles);
        elapsed
    }))
}

fn produce<C: Channel<u64>>(sender: C::Sender, share: u64) -> impl Job<()> {
    job!({
        for number in 0..share {
            wait!(C::send(&sender, number));
        }
    })
}
