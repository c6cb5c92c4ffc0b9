//! What one task sends and many receive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use super::super::question::RECEIVERS;
use super::{Asked, task};
use crate::compare::worlds::{Awaiting, Signal};

/// A channel of which each receiver gets what is sent.
pub(super) trait Spread: 'static {
    type Sender: Send + Sync + 'static;
    type Receiver: Send + 'static;

    /// How many messages can be sent before all receivers have to have got them.
    const BATCH: u64;

    fn open() -> Self::Sender;
    fn subscribe(sender: &Self::Sender) -> Self::Receiver;
    fn send(sender: &Self::Sender, message: u64);
    fn receive(receiver: &mut Self::Receiver) -> impl Future<Output = u64> + Send;
}

/// One task sends and receives by turns, and never waits.
pub(super) fn pass_freely<S: Spread>(operations: u64) -> Asked {
    let sender = S::open();
    let mut receiver = S::subscribe(&sender);
    task(async move {
        let begin = Instant::now();
        for number in 1..=operations {
            S::send(&sender, number);
            assert_eq!(S::receive(&mut receiver).await, number);
        }
        begin.elapsed()
    })
}

/// From the calling task to all receivers; what one of them gets is an operation. None misses anything: the sender goes on
/// when the last of them has got the whole batch.
pub(super) fn send_to_all<T: Awaiting, S: Spread>(operations: u64) -> Asked {
    let (sender, sending) = (S::open(), Arc::new((T::Signal::default(), AtomicU64::new(0))));
    let messages = operations.div_ceil(RECEIVERS);
    task(async move {
        let receiver = |_| receive::<T, S>(S::subscribe(&sender), Arc::clone(&sending), messages);
        let begin = Instant::now();
        let handles: Vec<_> = (0..RECEIVERS).map(receiver).map(T::spawn).collect();
        for number in 1..=messages {
            S::send(&sender, number);
            while number % S::BATCH == 0 && sending.1.load(Relaxed) < number / S::BATCH * RECEIVERS {
                sending.0.wait().await;
            }
        }
        for handle in handles {
            T::join(handle).await;
        }
        begin.elapsed()
    })
}

async fn receive<T: Awaiting, S: Spread>(
    mut receiver: S::Receiver,
    sending: Arc<(T::Signal, AtomicU64)>,
    messages: u64,
) {
    for number in 1..=messages {
        assert_eq!(S::receive(&mut receiver).await, number);
        // Relaxed: who has waited for the signal sees what was before.
        if number % S::BATCH == 0 && (sending.1.fetch_add(1, Relaxed) + 1) % RECEIVERS == 0 {
            sending.0.set();
        }
    }
}
