//! Messages from one task to many.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use super::super::{Signal, Tasks};
use super::pairs::Event;
use super::{Asked, task};
use crate::compare::primitives::question::RECEIVERS;

/// A channel of which each receiver gets every message.
pub(in crate::compare) trait Spread: 'static {
    type Sender: Send + Sync + 'static;
    type Receiver: Send + 'static;

    /// How many messages can be sent before all receivers have to have got them.
    const BATCH: u64;

    fn open() -> Self::Sender;
    fn subscribe(sender: &Self::Sender) -> Self::Receiver;
    fn send(sender: &Self::Sender, message: u64);
    fn receive(receiver: &mut Self::Receiver) -> later!(u64);
}

/// One task sends and receives by turns, and never waits.
pub(super) fn pass_freely<S: Spread>(operations: u64) -> Asked {
    task(job!({
        let sender = S::open();
        let mut receiver = S::subscribe(&sender);
        let begin = Instant::now();
        for number in 1..=operations {
            S::send(&sender, number);
            assert_eq!(wait!(S::receive(&mut receiver)), number);
        }
        begin.elapsed()
    }))
}

/// The calling task sends to all receivers; what one of them gets is an operation.
///
/// No receiver misses anything: the sender goes on when the last of them has got the whole batch.
pub(super) fn send_to_all<T: Tasks, S: Spread>(operations: u64) -> Asked {
    let messages = operations.div_ceil(RECEIVERS);
    task(job!({
        let (sender, sending) = (S::open(), Arc::new((Signal::<T>::new(), AtomicU64::new(0))));
        let receiver = |_| {
            let (mut receiver, sending) = (S::subscribe(&sender), Arc::clone(&sending));
            job!({
                for number in 1..=messages {
                    assert_eq!(wait!(S::receive(&mut receiver)), number);
                    // Relaxed: the task that is woken sees what was before.
                    if number % S::BATCH == 0 && (sending.1.fetch_add(1, Relaxed) + 1) % RECEIVERS == 0 {
                        sending.0.set();
                    }
                }
            })
        };
        let begin = Instant::now();
        let handles: Vec<_> = (0..RECEIVERS).map(receiver).map(T::spawn).collect();
        for number in 1..=messages {
            S::send(&sender, number);
            while number % S::BATCH == 0 && sending.1.load(Relaxed) < number / S::BATCH * RECEIVERS {
                wait!(sending.0.wait());
            }
        }
        join_all!(T, handles);
        begin.elapsed()
    }))
}
