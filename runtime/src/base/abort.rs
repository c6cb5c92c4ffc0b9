//! Lines on standard error, and the end of the process where code must not unwind.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, Write};

/// Writes one line to standard error, by one call: lines of several threads and processes do not mix.
///
/// A closed standard error is no reason to panic.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    _ = io::stderr().write_all(format!("fibra: {line}\n").as_bytes());
}

/// Ends the process when an unwinding drops it, which would free memory that others borrow.
pub(crate) struct Bomb {
    what: &'static str,
    whose: &'static str,
}

impl Bomb {
    /// For code of the runtime's own.
    pub(crate) fn of_runtime(what: &'static str) -> Self {
        Bomb { what, whose: "this is an error in the runtime or its driver" }
    }

    /// For code of the user's that must not unwind.
    pub(crate) fn of_user(what: &'static str) -> Self {
        Bomb { what, whose: "the process cannot go on after that" }
    }

    pub(crate) fn defuse(self) {
        std::mem::forget(self);
    }

    /// Ends the process now.
    #[cold]
    pub(crate) fn go_off(&self) -> ! {
        say(format_args!("{}; {}, aborting", self.what, self.whose));
        std::process::abort()
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.go_off();
    }
}

/// Runs code during which the caller has lent out what its guards claim to own.
///
/// The code gives it back at its end. If the code unwinds, the process ends.
#[inline(always)]
pub fn take_back<T>(take: impl FnOnce() -> T) -> T {
    let bomb = Bomb::of_runtime("a lock could not be taken again for a guard that stands for it");
    let taken = take();
    bomb.defuse();
    taken
}
