//! The atomics under every state word that has a loom model.
//!
//! State words import from here and nowhere else, so that `tests/loom.rs` can build the very same source files over
//! loom's types: it includes them by path beside a `primitive` module of its own.

#![forbid(unsafe_code)]

pub(crate) use std::cell::{Cell, UnsafeCell};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread::{self, yield_now};
pub(crate) use std::thread_local;
