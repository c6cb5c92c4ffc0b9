//! What a panic says.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the message with which `f` panics.
pub(crate) fn message<T>(f: impl FnOnce() -> T) -> String {
    text_of(&*catch_unwind(AssertUnwindSafe(f)).map(drop).expect_err("a panic"))
}

/// Returns the message of a panic that was caught.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).expect("a panic with a message").to_owned()
}
