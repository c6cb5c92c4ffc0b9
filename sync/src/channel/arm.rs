//! One of several operations that are waited for at once.

use std::time::Instant;

pub(crate) use crate::wait::Enlisted;
use crate::wait::{Claim, WakeHandle};

/// One of several operations that are waited for at once, of which one is selected.
///
/// The select tries all arms, then enlists all, then sleeps. A waker takes the select token before it serves an arm. So the
/// select is woken for one arm only, and its other arms are skipped in their lists.
pub trait Arm {
    /// Does the operation if it need not wait, and keeps the outcome. Returns true if it did.
    fn try_now(&self) -> bool;

    /// Returns true if the last try failed because its partner gave up. Trying on might not end.
    fn was_let_down(&self) -> bool {
        false
    }

    /// Returns when the clock makes it ready.
    fn deadline(&self) -> Option<Instant>;

    /// Publishes `me`, unless the operation is ready.
    ///
    /// # Safety
    /// The arm is enlisted and watched nowhere, and stays in place until it is withdrawn; `claim` lives as long. Only the waker
    /// that takes `claim` for `number` uses its wake.
    unsafe fn enlist(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted;

    /// Withdraws what [`enlist`](Arm::enlist) published, if it still is.
    ///
    /// # Safety
    /// It was enlisted.
    unsafe fn withdraw(&self);

    /// Serves waiters behind a withdrawn arm, after the sleep: a hook of a sleep must not wake.
    fn departed(&self) {}

    /// Keeps the outcome after the arm was served. Returns false if there is none: the select tries
    /// again.
    fn accept(&self) -> bool;

    /// Returns true if [`try_now`](Arm::try_now) would do it.
    fn is_ready(&self) -> bool;

    /// Publishes `me` to be notified when the operation is ready, unless it is.
    ///
    /// # Safety
    /// As for [`enlist`](Arm::enlist).
    unsafe fn watch(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted;

    /// Withdraws what [`watch`](Arm::watch) published, if it still is.
    ///
    /// # Safety
    /// It was watched.
    unsafe fn unwatch(&self);
}
