//! Lines on standard error, and the end of the process where code must not unwind.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, Write};

/// Writes one line to standard error, if there is one: a closed one is no reason to panic.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    _ = writeln!(io::stderr(), "fibra: {line}");
}

/// Ends the process when it is dropped: by an unwinding that would leave others with what they borrow gone.
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
        Bomb { what, whose: "nobody can go on after that" }
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

/// Runs code after which the caller owns again what it has lent out, and its guards say that it always did: should the code
/// unwind, the process ends.
#[inline(always)]
pub fn take_back<T>(take: impl FnOnce() -> T) -> T {
    let bomb = Bomb::of_runtime("a lock could not be taken again for a guard that stands for it");
    let taken = take();
    bomb.defuse();
    taken
}
