//! What may be used again after a panic, and what shows its name alone.

#![forbid(unsafe_code)]

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::channel::{
    Drain, IntoIter, Iter, Permit, Receiver, Select, SelectedOperation, Sender, TryIter, WeakReceiver,
    WeakSender,
};
use crate::messages::shown;
use crate::{
    auto_reset_event, barrier, broadcast, condvar, countdown_event, manual_reset_event, notify, once,
    oneshot, semaphore, wait_group, watch,
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
unwind_safe!(
    auto_reset_event::AutoResetEvent,
    countdown_event::CountdownEvent,
    manual_reset_event::ManualResetEvent
);
unwind_safe!(notify::Notify, semaphore::Semaphore, wait_group::WaitGroup);
// A waiter that unwinds has left the round or the queue.
unwind_safe!(barrier::Barrier, condvar::RawCondvar);
// Poisoning takes care of an initializer that panics.
unwind_safe!(once::Once);
// A message is sent and received whole or not at all.
unwind_safe!(of T: Sender<T>, Receiver<T>, Permit<'_, T>, WeakSender<T>, WeakReceiver<T>);
unwind_safe!(of T: oneshot::Sender<T>, oneshot::Receiver<T>);
// A panic in a clone leaves the channel as it is.
unwind_safe!(of T: broadcast::Sender<T>, broadcast::Receiver<T>, broadcast::WeakSender<T>);
// A change that panics leaves the value as it was left, which its docs say, and the channel whole.
unwind_safe!(of T: watch::Sender<T>, watch::Receiver<T>);

shown!([T] Sender<T>);
shown!([T] Receiver<T>);
shown!([T] WeakSender<T>);
shown!([T] WeakReceiver<T>);
shown!([T] Permit<'_, T>);
shown!([T] Iter<'_, T>);
shown!([T] TryIter<'_, T>);
shown!([T] Drain<T>);
shown!([T] IntoIter<T>);
shown!(Select<'_>);
shown!(SelectedOperation<'_>);
