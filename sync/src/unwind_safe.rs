//! What may be used again after a panic.

#![forbid(unsafe_code)]

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::{
    AutoResetEvent, Barrier, CountdownEvent, ManualResetEvent, Notify, Once, RawCondvar, Semaphore,
    WaitGroup, broadcast, channel, oneshot, watch,
};

macro_rules! unwind_safe {
    (of T: $($type:ty),+) => {$(
        impl<T> UnwindSafe for $type {}
        impl<T> RefUnwindSafe for $type {}
    )+};
    ($($type:ty),+) => {$(
        impl UnwindSafe for $type {}
        impl RefUnwindSafe for $type {}
    )+};
}

// No code of users runs while these change, so a panic leaves them whole.
unwind_safe!(AutoResetEvent, CountdownEvent, ManualResetEvent, Notify, Semaphore, WaitGroup);
// A waiter that unwinds has left the round or the queue.
unwind_safe!(Barrier, RawCondvar);
// Poisoning takes care of an initializer that panics.
unwind_safe!(Once);
// A message is sent and received whole or not at all.
unwind_safe!(of T: channel::Sender<T>, channel::Receiver<T>, channel::WeakSender<T>, channel::WeakReceiver<T>);
unwind_safe!(of T: oneshot::Sender<T>, oneshot::Receiver<T>);
// A panic in a clone leaves the channel as it is.
unwind_safe!(of T: broadcast::Sender<T>, broadcast::Receiver<T>, broadcast::WeakSender<T>);
// A change that panics leaves the value as it was left, which its docs say, and the channel whole.
unwind_safe!(of T: watch::Sender<T>, watch::Receiver<T>);
