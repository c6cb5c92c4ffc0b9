//! The seam between a sleep and what is waited for.

#![forbid(unsafe_code)]

use crate::waiter::kind::WakeHandle;

/// How one sleep is published, and how it is withdrawn.
///
/// Neither hook sleeps, panics or resumes anybody. (The sleeper itself may be woken or cancelled by what a hook calls; a task would
/// count as asleep after a panic, and might be queued while it runs.) They take `&self`, and the fields of a published node are cells or
/// atomics: with `&mut self` the compiler may keep a field in a register over a lock that a waker holds meanwhile, and
/// the second look sees the first one's value.
pub trait WaitStrategy {
    /// Publishes `me`, then looks again at what is waited for.
    ///
    /// From here on a wake is not lost: one that comes before the sleeper is off its stack is kept for it. Which stack
    /// this runs on is not promised.
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep;

    /// Withdraws what `after_asleep` published. Runs before the sleeper's own code goes on, whatever woke it, also
    /// after [`Asleep::Rouse`], which counts as [`Waking::Notified`].
    fn before_awake(&self, why: Waking) -> Withdrawal;

    /// True where a short spin may spare the sleep: what is waited for may come from another worker or thread at any moment.
    /// Nothing that comes from the worker's own driver or timers does.
    fn may_spin(&self) -> bool {
        false
    }
}

/// What `after_asleep` saw when it looked again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asleep {
    /// It has not come: sleep.
    Stay,
    /// It is there already: do not sleep.
    Rouse,
}

/// Why a sleep ended. When several causes came at once the first of this order counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waking {
    /// Notified. The sleeper takes what it waited for, or passes the notification on.
    Notified,
    /// The deadline of the sleep itself passed.
    TimedOut,
    /// The task was cancelled; [`unwind_cancelled`](crate::sleep::cancel_points::unwind_cancelled) is what an operation without an error channel does
    /// about it.
    Cancelled,
}

/// What `before_awake` found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Withdrawal {
    /// Nobody can notify this sleep any more.
    Withdrawn,
    /// A waker had unlinked the node already: its notification has landed or is about to.
    Served,
}

/// A flag that one waiter sleeps on: the token of a park, the waker of a `block_on`, the end of a scope.
pub(crate) trait Flag {
    /// Leaves the waiter's wake for the caller that raises the flag. Does not sleep where it is up.
    fn enter(&self, me: WakeHandle<'_>) -> Asleep;

    /// Ends the sleep. Returns true if the flag was raised: that wake has landed or is about to.
    fn leave(&self, why: Waking) -> bool;

    /// See [`WaitStrategy::may_spin`].
    const SPINS: bool;
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
}
