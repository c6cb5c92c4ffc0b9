//! The clock as this library's other crates read it.

#![forbid(unsafe_code)]

pub use crate::base::clock::{has_passed, machine, now, on_machine, shown, wall};
