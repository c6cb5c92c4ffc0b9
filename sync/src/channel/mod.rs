//! Channels with many senders and many receivers, and a select over several of them.
//!
//! | made by | holds | a send waits |
//! | --- | --- | --- |
//! | [`bounded(n)`](bounded) | up to `n` messages | while it is full |
//! | [`bounded(0)`](bounded) | nothing: a rendezvous | until a receiver takes the message |
//! | [`unbounded()`](unbounded) | any number | never |
//! | [`after`], [`at`] | one message, from the clock | |
//! | [`tick`] | one message each period, from the clock | |
//! | [`never()`] | nothing, ever | |
//!
//! The interface is that of the crate `crossbeam-channel`, with [`select!`](crate::select) and [`Select`] for waits at several
//! channels at once. Waiting allocates nothing, and every wait works in tasks and in plain threads. Futures use
//! [`Sender::send_async`], [`Sender::reserve_async`] and [`Receiver::recv_async`].
//!
//! A sender hands its message to the receiver that waits longest. A receiver that makes room fills it with the message of the
//! sender that waits longest. So no arrival overtakes a waiter.
//!
//! Each operation counts against the budget of its task, also one that fails or only looks, as [`try_recv`](Receiver::try_recv)
//! and [`len`](Receiver::len) do. So each is a point where a task may yield, and a loop over one lets other tasks run.

// Its macro is for `outer_sources` too.
#[macro_use]
mod sources;

mod arm;
mod choice;
mod counted;
mod error;
mod futures;
mod iter;
mod join_arm;
mod macros;
mod operation;
mod outcome;
mod outer_sources;
mod permit;
mod places;
mod queue;
mod receive_arm;
mod receiver;
mod reserve;
mod select;
pub(crate) mod selectable;
mod send_arm;
mod sender;
mod shared;
mod state;
mod timers;
mod wait_arm;
mod weak;

use std::time::{Duration, Instant};

use fibra_runtime::time;

use counted::Counted;
use receiver::Source;
use timers::Timer;

use crate::primitive::Arc;

pub use error::{
    ReadyTimeoutError, RecvError, RecvTimeoutError, SelectTimeoutError, SendError, SendTimeoutError,
    TryReadyError, TryRecvError, TrySelectError, TrySendError,
};
pub use iter::{Drain, IntoIter, Iter, TryIter};
pub use permit::Permit;
pub use receiver::Receiver;
pub use select::{Select, SelectedOperation};
pub use selectable::Selectable;
pub use sender::Sender;
pub use weak::{WeakReceiver, WeakSender};

pub use crate::{select, select_biased};

/// The parts of [`select!`](crate::select).
#[doc(hidden)]
pub mod __private {
    pub use super::arm::{Arm, Purpose};
    pub use super::choice::{Limit, Order, choose};
    pub use super::join_arm::join_arm;
    pub use super::receive_arm::RecvArm;
    pub use super::send_arm::SendArm;
    pub use super::wait_arm::{WaitArm, wait_arm};
    pub use crate::countdown::Countdown;
    pub use fibra_runtime::JoinHandle;
}

/// Makes a channel that holds up to `capacity` messages.
///
/// With a capacity of 0 it is a rendezvous: a send ends when a receiver takes the message. The memory for all messages is
/// allocated here.
///
/// # Panics
/// Panics if the messages would take more memory than can be addressed.
///
/// # Examples
/// ```
/// use fibra_sync::channel::{self, RecvError};
/// let (sender, receiver) = channel::bounded(2);
/// sender.send(1).unwrap();
/// sender.send(2).unwrap();
/// drop(sender);
/// assert_eq!([receiver.recv(), receiver.recv(), receiver.recv()], [Ok(1), Ok(2), Err(RecvError)]);
/// ```
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    ends(Some(capacity))
}

/// Makes a channel that holds any number of messages, so that a send never waits.
///
/// Memory is allocated in blocks of 32 messages and freed as they are received; one or two blocks are kept.
///
/// # Examples
/// ```
/// use fibra_sync::channel;
/// let (sender, receiver) = channel::unbounded();
/// (0..100).for_each(|n| sender.send(n).unwrap());
/// assert_eq!(receiver.len(), 100);
/// assert!(receiver.try_iter().eq(0..100));
/// ```
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    ends(None)
}

fn ends<T>(capacity: Option<usize>) -> (Sender<T>, Receiver<T>) {
    let channel = Arc::new(Counted::new(capacity));
    (Sender { channel: Arc::clone(&channel) }, Receiver { source: Source::Senders(channel) })
}

/// Makes a receiver of one message after `delay`: the time at which it was due.
///
/// Nothing runs meanwhile. The channel is never disconnected: a second receive waits without end.
///
/// # Examples
/// ```
/// use fibra_sync::channel;
/// use std::time::{Duration, Instant};
/// let due = Instant::now() + Duration::from_millis(5);
/// assert!(channel::after(Duration::from_millis(5)).recv().unwrap() >= due);
/// ```
pub fn after(delay: Duration) -> Receiver<Instant> {
    time::deadline(delay).map_or_else(never, at)
}

/// Makes a receiver that gets one message at the time `due`: that time.
///
/// # Examples
/// ```
/// use fibra_sync::channel;
/// use std::time::{Duration, Instant};
/// let due = Instant::now() + Duration::from_millis(5);
/// assert_eq!(channel::at(due).recv(), Ok(due));
/// ```
pub fn at(due: Instant) -> Receiver<Instant> {
    Receiver { source: Source::Clock(Arc::new(Timer::new(due, None))) }
}

/// Makes a receiver of a message each `period`: the time at which it was due.
///
/// The first message is due after one period. At most one message waits. Messages that become due meanwhile are missed, and
/// the next one is due a period after the waiting one was received. A message that a receive or a select has waited for moves no
/// later one, however late the wake-up comes. After [`ready`](Select::ready) the time of the receive counts.
///
/// # Examples
/// ```
/// use fibra_sync::channel;
/// use std::time::Duration;
/// let ticks = channel::tick(Duration::from_millis(2));
/// let (first, second) = (ticks.recv().unwrap(), ticks.recv().unwrap());
/// assert!(second - first >= Duration::from_millis(2));
/// ```
pub fn tick(period: Duration) -> Receiver<Instant> {
    match time::deadline(period) {
        Some(first) => Receiver { source: Source::Clock(Arc::new(Timer::new(first, Some(period)))) },
        None => never(),
    }
}

/// Makes a receiver that never gets a message and is never disconnected.
///
/// It stands for an arm of a [`select!`](crate::select) that is not wanted.
///
/// # Examples
/// ```
/// use fibra_sync::channel::{self, TryRecvError};
/// assert_eq!(channel::never::<i32>().try_recv(), Err(TryRecvError::Empty));
/// ```
pub const fn never<T>() -> Receiver<T> {
    Receiver { source: Source::Never }
}
