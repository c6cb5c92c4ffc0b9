//! Two tasks that pass something to and fro, or from one to the other.

use std::sync::Arc;
use std::time::Instant;

use super::{Asked, pair, task};
use crate::compare::worlds::{Awaiting, Signal};

/// A channel of some kind for messages of type `M`.
pub(super) trait Channel<M>: 'static {
    type Sender: Clone + Send + Sync + 'static;
    type Receiver: Send + 'static;

    fn open() -> (Self::Sender, Self::Receiver);
    fn send(sender: &Self::Sender, message: M) -> impl Future<Output = ()> + Send;
    fn receive(receiver: &mut Self::Receiver) -> impl Future<Output = M> + Send;
}

/// A select over two channels.
pub(super) trait Choice: Channel<u64> {
    fn receive_either(
        one: &mut Self::Receiver,
        other: &mut Self::Receiver,
    ) -> impl Future<Output = u64> + Send;
}

/// A mutex around whose turn it is, and what stands for a condition variable.
pub(super) trait Turns: Default + Send + Sync + 'static {
    /// Waits until it is `mine`, then makes it the other's.
    fn pass(&self, mine: bool) -> impl Future<Output = ()> + Send;
}

/// A channel for one message, made anew for each.
pub(super) trait Oneshot: 'static {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    fn open() -> (Self::Sender, Self::Receiver);
    fn send(sender: Self::Sender, message: u64);
    fn receive(receiver: Self::Receiver) -> impl Future<Output = u64> + Send;
}

/// What a call sends: a number, and where the reply is expected.
pub(super) type Request<O> = (u64, <O as Oneshot>::Sender);

/// One task sends and receives by turns, and never waits.
pub(super) fn pass_freely<C: Channel<u64>>(operations: u64) -> Asked {
    let (sender, mut receiver) = C::open();
    task(async move {
        let begin = Instant::now();
        for number in 0..operations {
            C::send(&sender, number).await;
            assert_eq!(C::receive(&mut receiver).await, number);
        }
        begin.elapsed()
    })
}

/// One task sets a signal and waits at it by turns, and never has to.
pub(super) fn set_freely<S: Signal>(operations: u64) -> Asked {
    let signal = S::default();
    task(async move {
        let begin = Instant::now();
        for _ in 0..operations {
            signal.set();
            signal.wait().await;
        }
        begin.elapsed()
    })
}

/// One task makes, sends and receives one after the other, and never waits.
pub(super) fn reply_freely<O: Oneshot>(operations: u64) -> Asked {
    task(async move {
        let begin = Instant::now();
        for number in 0..operations {
            let (sender, receiver) = O::open();
            O::send(sender, number);
            assert_eq!(O::receive(receiver).await, number);
        }
        begin.elapsed()
    })
}

/// One task sends to one of two channels and receives from either by turns, and never waits.
pub(super) fn choose_freely<C: Choice>(operations: u64) -> Asked {
    let ((one, mut first), (other, mut second)) = (C::open(), C::open());
    task(async move {
        let _other = other;
        let begin = Instant::now();
        for number in 0..operations {
            C::send(&one, number).await;
            assert_eq!(C::receive_either(&mut first, &mut second).await, number);
        }
        begin.elapsed()
    })
}

pub(super) fn ping_pong<C: Channel<u64>>(operations: u64) -> Asked {
    let (there, mut arrived) = C::open();
    let (back, mut returned) = C::open();
    let asking = async move {
        let begin = Instant::now();
        for number in 0..operations {
            C::send(&there, number).await;
            assert_eq!(C::receive(&mut returned).await, number);
        }
        begin.elapsed()
    };
    pair(asking, async move {
        for _ in 0..operations {
            let number = C::receive(&mut arrived).await;
            C::send(&back, number).await;
        }
    })
}

pub(super) fn set_to_and_fro<S: Signal>(operations: u64) -> Asked {
    let (there, back) = (Arc::new(S::default()), Arc::new(S::default()));
    let (arrived, returned) = (Arc::clone(&there), Arc::clone(&back));
    let asking = async move {
        let begin = Instant::now();
        for _ in 0..operations {
            there.set();
            returned.wait().await;
        }
        begin.elapsed()
    };
    pair(asking, async move {
        for _ in 0..operations {
            arrived.wait().await;
            back.set();
        }
    })
}

pub(super) fn take_turns<T: Turns>(operations: u64) -> Asked {
    let ours = Arc::new(T::default());
    let theirs = Arc::clone(&ours);
    let asking = async move {
        let begin = Instant::now();
        for _ in 0..operations {
            ours.pass(false).await;
        }
        begin.elapsed()
    };
    pair(asking, async move {
        for _ in 0..operations {
            theirs.pass(true).await;
        }
    })
}

pub(super) fn call<C: Channel<Request<O>>, O: Oneshot>(operations: u64) -> Asked {
    let (there, mut arrived) = C::open();
    let asking = async move {
        let begin = Instant::now();
        for number in 0..operations {
            let (reply, returned) = O::open();
            C::send(&there, (number, reply)).await;
            assert_eq!(O::receive(returned).await, number);
        }
        begin.elapsed()
    };
    pair(asking, async move {
        for _ in 0..operations {
            let (number, reply) = C::receive(&mut arrived).await;
            O::send(reply, number);
        }
    })
}

/// From one producer.
pub(super) fn stream<C: Channel<u64>>(operations: u64) -> Asked {
    let (sender, mut receiver) = C::open();
    let consuming = async move {
        let begin = Instant::now();
        for number in 0..operations {
            assert_eq!(C::receive(&mut receiver).await, number);
        }
        begin.elapsed()
    };
    pair(consuming, async move {
        for number in 0..operations {
            C::send(&sender, number).await;
        }
    })
}

/// From eight producers to the calling task.
pub(super) fn stream_from_eight<T: Awaiting, C: Channel<u64>>(operations: u64) -> Asked {
    let (sender, mut receiver) = C::open();
    task(async move {
        let begin = Instant::now();
        let share = |number| operations / 8 + u64::from(number < operations % 8);
        let producer = |number| T::spawn(produce::<C>(sender.clone(), share(number)));
        let handles: Vec<_> = (0..8).map(producer).collect();
        for _ in 0..operations {
            C::receive(&mut receiver).await;
        }
        let elapsed = begin.elapsed();
        for handle in handles {
            T::join(handle).await;
        }
        elapsed
    })
}

/// From two producers, each with a channel of its own, to the calling task.
pub(super) fn choose<T: Awaiting, C: Choice>(operations: u64) -> Asked {
    let ((one, mut first), (other, mut second)) = (C::open(), C::open());
    task(async move {
        let begin = Instant::now();
        let (half, rest) = (operations / 2, operations.div_ceil(2));
        let handles =
            [T::spawn(produce::<C>(one.clone(), half)), T::spawn(produce::<C>(other.clone(), rest))];
        for _ in 0..operations {
            C::receive_either(&mut first, &mut second).await;
        }
        let elapsed = begin.elapsed();
        for handle in handles {
            T::join(handle).await;
        }
        elapsed
    })
}

async fn produce<C: Channel<u64>>(sender: C::Sender, share: u64) {
    for number in 0..share {
        C::send(&sender, number).await;
    }
}
