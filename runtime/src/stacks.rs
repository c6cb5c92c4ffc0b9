//! The seam between dumps and the crate that walks stacks.

#![forbid(unsafe_code)]

#[cfg(unix)]
pub use crate::base::abort_dump::left_at;
pub use crate::base::memory::read;
pub use crate::base::unwinder::{SavedContext, Symbol, Unwinder, install};
