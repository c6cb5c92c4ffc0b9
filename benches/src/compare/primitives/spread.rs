//! What one task sends and many receive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::question::RECEIVERS;
use crate::compare::worlds::Blocking;

/// A channel of which each receiver gets what is sent.
pub(super) trait Spread {
    type Sender;
    type Receiver: Send + 'static;

    /// How many messages can be sent before all receivers have to have got them.
    const BATCH: u64;

    fn open() -> Self::Sender;
    fn subscribe(sender: &Self::Sender) -> Self::Receiver;
    fn send(sender: &Self::Sender, message: u64);
    fn receive(receiver: &mut Self::Receiver) -> u64;
}

/// One task sends and receives by turns, and never waits.
pub(super) fn pass_freely<S: Spread>(operations: u64) -> Duration {
    let sender = S::open();
    let mut receiver = S::subscribe(&sender);
    let begin = Instant::now();
    for number in 1..=operations {
        S::send(&sender, number);
        assert_eq!(S::receive(&mut receiver), number);
    }
    begin.elapsed()
}

/// From the calling task to all receivers; what one of them gets is an operation. None misses anything: the sender goes on
/// when the last of them has got the whole batch.
pub(super) fn send_to_all<T: Blocking, S: Spread>(operations: u64) -> Duration {
    let (sender, sending) = (S::open(), Arc::new((T::current(), AtomicU64::new(0))));
    let messages = operations.div_ceil(RECEIVERS);
    let receiver = || {
        let (mut receiver, sending) = (S::subscribe(&sender), Arc::clone(&sending));
        move || {
            for number in 1..=messages {
                assert_eq!(S::receive(&mut receiver), number);
                // Relaxed: who is unparked sees what was before.
                if number % S::BATCH == 0 && (sending.1.fetch_add(1, Relaxed) + 1) % RECEIVERS == 0 {
                    T::unpark(&sending.0);
                }
            }
        }
    };
    let begin = Instant::now();
    // SAFETY: what lives over a suspension are ends of channels and `Arc`s, which are `Send`, and counts.
    let handles: Vec<_> = (0..RECEIVERS).map(|_| unsafe { T::spawn(receiver()) }).collect();
    for number in 1..=messages {
        S::send(&sender, number);
        while number % S::BATCH == 0 && sending.1.load(Relaxed) < number / S::BATCH * RECEIVERS {
            T::park();
        }
    }
    handles.into_iter().for_each(T::join);
    begin.elapsed()
}
