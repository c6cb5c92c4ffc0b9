//! The atomics under the state word that has a loom model.
//!
//! `readiness.rs` imports from here and nowhere else, so that `tests/loom.rs` can build the very same source file over
//! loom's types: it includes it by path beside a `primitive` module of its own.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
