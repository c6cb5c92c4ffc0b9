//! What a choice is between.

use std::time::Instant;

use crate::wait::{Claim, WakeHandle};

/// One of several things that are waited for at once, of which one is chosen.
///
/// The chooser tries all of them, then enlists all, then sleeps. Whoever makes one ready takes the claim first: the chooser
/// is woken for one of them, and what the others were offered goes to the next in their lists.
pub trait Arm {
    /// Does it if that needs no wait, and keeps the outcome. True if it did.
    fn try_now(&self) -> bool;

    /// True if that failed since somebody gave up who had what it needs: who tries on may do so for ever.
    fn was_let_down(&self) -> bool {
        false
    }

    /// When it will be ready without anybody's doing.
    fn deadline(&self) -> Option<Instant>;

    /// Publishes `me`, then looks whether it is ready.
    ///
    /// # Safety
    /// The arm is enlisted and watched nowhere, and stays in place until it is withdrawn; `claim` lives as long. Its wake is
    /// used only by the one who takes `claim` for `number`.
    unsafe fn enlist(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted;

    /// Takes back what [`enlist`](Arm::enlist) published, if it still is.
    ///
    /// # Safety
    /// It was enlisted.
    unsafe fn withdraw(&self);

    /// After the sleep: does for others what [`withdraw`](Arm::withdraw) owes them, and no hook of a sleep may do.
    fn departed(&self) {}

    /// After it was claimed: keeps the outcome. False if there is none, and everything is to be tried again.
    fn accept(&self) -> bool;

    /// True if [`try_now`](Arm::try_now) would do it.
    fn is_ready(&self) -> bool;

    /// As [`enlist`](Arm::enlist), for one who only wants to know when it is ready.
    ///
    /// # Safety
    /// As for [`enlist`](Arm::enlist).
    unsafe fn watch(&self, me: WakeHandle<'_>, claim: &Claim, number: usize) -> Enlisted;

    /// Takes back what [`watch`](Arm::watch) published, if it still is.
    ///
    /// # Safety
    /// It was watched.
    unsafe fn unwatch(&self);

    /// After it was claimed for one who only watched: gives to others what it was given. True if it was ready, or is now: who is
    /// told may have been late with an earlier look, and find that all is done.
    fn decline(&self) -> bool {
        self.is_ready()
    }
}

/// What an arm saw when it was enlisted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enlisted {
    /// It waits.
    Waits,
    /// It is ready: nothing was published.
    Ready,
}
