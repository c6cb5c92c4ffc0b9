//! Random choices, as this library's other crates make them.

#![forbid(unsafe_code)]

pub use crate::scheduler::current::random_below;
