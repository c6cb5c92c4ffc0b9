//! The token of `park` and `unpark`, as a state.
//!
//! ```text
//!            unpark                         unpark: wakes
//!   EMPTY ───────────▶ TOKEN        PARKED ───────────────▶ TOKEN
//!     ▲                  │             ▲
//!     └──── park takes it┘    EMPTY ───┘ park falls asleep; timed out or cancelled: back to EMPTY
//! ```
//!
//! Only the task itself moves to EMPTY and PARKED; any thread moves to TOKEN. The caller that moves
//! PARKED to TOKEN has unlinked the sleeper and may wake it. The sleeper then
//! finds TOKEN and waits for that wake to land.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const PARKED: u8 = 1;
const TOKEN: u8 = 2;

/// Holds the parking state of one task.
pub(crate) struct Parking(AtomicU8);

/// Tells what `unpark` found.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unparked {
    /// The task is parked, and the caller wakes it.
    Wake,
    /// The token is kept for the next park.
    Kept,
}

/// Tells what a task found as it went to park.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    /// From here on an unpark gives a wake.
    Parked,
    /// The token is there.
    TokenFirst,
}

/// Tells what a parked task found when it went on.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// No unpark has come.
    Unserved,
    /// An unpark has come. It gives a wake, unless the token was there when the park began.
    Token,
}

impl Parking {
    pub(crate) const fn new() -> Self {
        Parking(AtomicU8::new(EMPTY))
    }

    /// Gives the token. Callable from any thread.
    pub(crate) fn unpark(&self) -> Unparked {
        // Release: the parked task sees what the unparker did. Acquire: pairs with `enter`.
        match self.0.swap(TOKEN, Ordering::AcqRel) {
            PARKED => Unparked::Wake,
            _ => Unparked::Kept,
        }
    }

    /// Takes the token, if it is there, without parking. Called by the task.
    pub(crate) fn take_token(&self) -> bool {
        // Acquire: pairs with the Release in `unpark`. Relaxed: a hint; the swap decides.
        self.0.load(Ordering::Relaxed) == TOKEN && self.0.swap(EMPTY, Ordering::Acquire) == TOKEN
    }

    /// Parks, unless the token is there, which it leaves in place. Called by the task.
    pub(crate) fn enter(&self) -> Entered {
        // Release: pairs with `unpark`, which wakes what was readied before. Acquire: pairs with it as well.
        match self.0.compare_exchange(EMPTY, PARKED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Entered::Parked,
            Err(_) => Entered::TokenFirst,
        }
    }

    /// Ends the park, and takes the token if it is there. Called by the task.
    pub(crate) fn leave(&self) -> Left {
        // Acquire: pairs with the Release in `unpark`.
        match self.0.swap(EMPTY, Ordering::AcqRel) {
            TOKEN => Left::Token,
            _ => Left::Unserved,
        }
    }
}
