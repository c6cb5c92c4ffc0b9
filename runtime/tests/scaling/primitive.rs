//! Where the files that are included take their atomics from: std's, since the actors of a simulation act one at a time.

pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard};
