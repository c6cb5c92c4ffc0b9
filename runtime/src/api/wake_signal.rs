//! The flag that the waker of a `block_on` raises.
//!
//! The state is that of `parking.rs`, in a token of its own: what a user's `unpark` means for `task::park` is not touched by
//! it. In place of a task there is the right to wake the sleeper, a task or a thread, which is there while it is parked:
//!
//! ```text
//!   the sleeper:  put the wake, enter, ... , leave, take the wake back unless the flag was raised
//!   a waker:      raise: the one move from PARKED to TOKEN takes the wake and lands it
//! ```
//!
//! Between two sleeps, and once the last one is over, no sleeper is behind the flag: a waker that is kept for ever raises it and
//! that is all.

use crate::base::primitive::Cell;
use crate::tasks::parking::{Entered, Left, Parking, Unparked};
use crate::waiter::kind::RawWake;

/// A flag, and the caller that sleeps until it is raised.
pub(crate) struct Signal {
    parking: Parking,
    /// Belongs to the sleeper while it is not parked; from then on to the waker that moves PARKED to TOKEN, until its wake lands.
    sleeper: Cell<Option<RawWake>>,
}

// SAFETY: one thread at a time touches the cell, as the field says, and a wake may be used on any
// thread.
unsafe impl Sync for Signal {}

impl Signal {
    pub(crate) const fn new() -> Self {
        Signal { parking: Parking::new(), sleeper: Cell::new(None) }
    }

    /// Raises the flag, and returns the wake if the sleeper is parked. Any thread may call it.
    #[must_use = "a sleeper waits for this wake"]
    pub(crate) fn raise(&self) -> Option<RawWake> {
        match self.parking.unpark() {
            Unparked::Wake => self.sleeper.take(),
            Unparked::Kept => None,
        }
    }

    /// Takes the flag down, if it is up. The sleeper calls it.
    pub(crate) fn take(&self) -> bool {
        self.parking.take_token()
    }

    /// Leaves `wake` for the waker that raises the flag. Returns false if it is up already: then
    /// the wake is dropped unused. By the sleeper.
    pub(crate) fn enter(&self, wake: RawWake) -> bool {
        self.sleeper.set(Some(wake));
        let parked = self.parking.enter() == Entered::Parked;
        if !parked {
            // The token was there, so no other thread has seen the wake.
            self.sleeper.take();
        }
        parked
    }

    /// Ends the sleep that `enter` began, and takes the flag down. Returns true if it was raised:
    /// that wake has landed or is about to. By the sleeper.
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        let raised = self.parking.leave() == Left::Token;
        if !raised {
            self.sleeper.take();
        }
        raised
    }
}
