//! The seam between a sleep and what is waited for.

#![forbid(unsafe_code)]

use crate::waiter::description::WaitRecord;
use crate::waiter::kind::WakeHandle;

/// Publishes one sleep, and withdraws it.
///
/// Neither hook sleeps, panics or resumes a task. (What a hook calls may wake or cancel the sleeper
/// itself. After a panic a task would count as asleep, and might be queued while it runs.)
///
/// The hooks take `&self`, and the fields of a published node are cells or atomics. With
/// `&mut self` the compiler might keep a field in a register across a lock that a waker holds
/// meanwhile, and the second look would read a stale value.
pub trait WaitStrategy {
    /// Publishes `me`, then looks again at what is waited for.
    ///
    /// From here on no wake is lost: a wake that comes before the sleeper is off its stack is kept
    /// for it. The hook may run on any stack.
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep;

    /// Withdraws what `after_asleep` published.
    ///
    /// Runs before the sleeper's own code goes on, whatever woke it. It also runs after
    /// [`Asleep::Rouse`], which counts as [`Waking::Notified`].
    fn before_awake(&self, why: Waking) -> Withdrawal;

    /// Returns true where a short spin may save the sleep.
    ///
    /// That is so if another worker or thread may deliver at any moment. Nothing that comes from
    /// the worker's own driver or timers qualifies.
    fn may_spin(&self) -> bool {
        false
    }

    /// Returns the address of a record of what is waited for, which stays as long as the strategy.
    fn record(&self) -> *const WaitRecord {
        WaitRecord::UNKNOWN
    }
}

/// Tells what `after_asleep` saw when it looked again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asleep {
    /// Not there yet: sleep.
    Stay,
    /// There already: do not sleep.
    Rouse,
}

/// Tells why a sleep ended. Of several causes the first in this order counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waking {
    /// Notified. The sleeper takes what it waited for, or passes the notification on.
    Notified,
    /// The deadline of the sleep itself passed.
    TimedOut,
    /// The task was cancelled. An operation without an error channel then calls
    /// [`unwind_cancelled`](crate::sleep::cancel_points::unwind_cancelled).
    Cancelled,
}

/// Tells what `before_awake` found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Withdrawal {
    /// No waker can notify this sleep any more.
    Withdrawn,
    /// A waker had unlinked the node already: its notification has landed or is about to.
    Served,
}

/// A flag that one waiter sleeps on: the token of a park, the end of a runtime.
pub(crate) trait Flag {
    /// Leaves the waiter's wake for the caller that raises the flag. Does not sleep where it is up.
    fn enter(&self, me: WakeHandle<'_>) -> Asleep;

    /// Ends the sleep. Returns true if the flag was raised: that wake has landed or is about to.
    fn leave(&self, why: Waking) -> bool;

    /// See [`WaitStrategy::may_spin`].
    const SPINS: bool;

    /// Says what the waiter waits for.
    const RECORD: &'static WaitRecord;
}

/// Sleeps until a flag is raised.
pub(crate) struct UntilRaised<'a, F>(pub(crate) &'a F);

impl<F: Flag> WaitStrategy for UntilRaised<'_, F> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        self.0.enter(me)
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // A wake that has not ended the sleep may still be on its way.
        match self.0.leave(why) && why != Waking::Notified {
            true => Withdrawal::Served,
            false => Withdrawal::Withdrawn,
        }
    }

    fn may_spin(&self) -> bool {
        F::SPINS
    }

    fn record(&self) -> *const WaitRecord {
        F::RECORD
    }
}
