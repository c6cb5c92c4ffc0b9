//! What a select can wait for beside channels: the interface of events, counts, permits, tokens and other receivers.

#![forbid(unsafe_code)]

use crate::wait::Arm;

/// An event, count, semaphore, token or receiver that a select can wait for.
///
/// [`select!`](crate::select) and [`Select::wait`](super::Select::wait) take it.
///
/// | type | is ready | and the select then |
/// | --- | --- | --- |
/// | [`AutoResetEvent`](crate::AutoResetEvent) | when it is set and no task waits longer | has used the set |
/// | [`ManualResetEvent`](crate::ManualResetEvent) | while it is set, or by a set that came while the select waited | |
/// | [`Notify`](crate::Notify) | when a notification is kept for it, or comes | has used the notification |
/// | [`CountdownEvent`](crate::CountdownEvent), [`WaitGroup`](crate::WaitGroup) | when the count is zero, or was while the select waited | |
/// | [`Semaphore`](crate::Semaphore) | when a permit is free and no task waits longer, or once it is closed | has the permit; the select panics if it is closed |
/// | [`CancelToken`](fibra_runtime::CancelToken) | once it is cancelled | |
/// | [`oneshot::Receiver`](crate::oneshot::Receiver) | when its value has come, or none will come | leaves it to `recv` |
/// | [`broadcast::Receiver`](crate::broadcast::Receiver) | when there is a message, or none will come | leaves it to `recv` |
/// | [`watch::Receiver`](crate::watch::Receiver) | when there is an unseen value, or none will come | leaves it to `changed` |
///
/// Other crates cannot implement it.
#[diagnostic::on_unimplemented(
    message = "a select cannot wait for `{Self}`",
    label = "is no event, count, semaphore, token, or receiver of a oneshot, broadcast or watch channel",
    note = "a `Select` has `recv` and `send` for channels",
    note = "for a signal, wait for its `event()`; for a socket, for an event of a `fibra::Readiness`; for anything else, \
            `race` it against the select"
)]
pub trait Selectable: sealed::Sealed {
    /// The permit of a semaphore, nothing of an event.
    type Outcome<'a>
    where
        Self: 'a;

    /// A place among its waiters.
    #[doc(hidden)]
    type Arm<'a>: Arm
    where
        Self: 'a;

    /// Makes the place of a select.
    #[doc(hidden)]
    fn arm(&self) -> Self::Arm<'_>;

    /// Takes the source without waiting, once. The select has counted the look.
    #[doc(hidden)]
    fn take_now(&self) -> Option<sealed::Taken>;

    /// Says what a waker has taken for an arm that it served.
    #[doc(hidden)]
    fn served(&self, _arm: &Self::Arm<'_>) -> sealed::Taken {
        sealed::Taken(0)
    }

    /// Gives back what was taken once.
    #[doc(hidden)]
    fn give_back(&self, _taken: sealed::Taken) {}

    /// Makes the outcome once the source was taken.
    #[doc(hidden)]
    fn outcome(&self, taken: sealed::Taken) -> Self::Outcome<'_>;
}

/// Items that only this crate can name: a select relies on its implementations, and makes a permit only once it was taken.
pub(super) mod sealed {
    /// A type that a select can wait for.
    pub trait Sealed {}

    /// Proves that a select has taken the source. It holds the age of the set of an auto-reset event, the number of
    /// permits of a semaphore, and 1 for the notification of one.
    pub struct Taken(pub(in super::super) u64);
}
