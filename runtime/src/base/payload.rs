//! Calls and drops of user code that let no panic pass.

#![forbid(unsafe_code)]

use std::any::Any;
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::base::abort::say;

/// Drops a user's value; a panic of its destructor goes no further than its message.
pub(crate) fn drop_quietly<V>(value: V) {
    quietly(|| drop(value));
}

/// Runs a user's destructors; a panic goes no further than its message.
pub(crate) fn quietly(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        drop_payload(payload);
    }
}

/// Drops the payload of a panic. A payload of a panic in that destructor is leaked, so this ends.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

/// Calls a hook of the user's with something to tell. A panic of the hook is reported together with it.
pub(crate) fn tell<T: Display>(what: &str, about: &T, hook: impl FnOnce(&T)) {
    if let Err(error) = guarded(what, || hook(about)) {
        say(format_args!("{error} at this: {about}"));
    }
}

/// Runs code of the user's outside of tasks; its panic becomes an error.
pub(crate) fn guarded<T>(what: &str, f: impl FnOnce() -> T) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        drop_payload(payload);
        io::Error::other(format!("{what} panicked"))
    })
}
