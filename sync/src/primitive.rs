//! The atomics under every state word that has a loom model.
//!
//! State words import from here and nowhere else, so that `tests/loom.rs` can build the very same source files over
//! loom's types.

#![forbid(unsafe_code)]

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
