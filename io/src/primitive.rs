//! The atomics under the state words that have loom models.
//!
//! These import from here and nowhere else, so that `tests/loom.rs` can build the very same source files over loom's types: it
//! includes them by path beside a `primitive` module of its own.

#![forbid(unsafe_code)]

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard};
