//! The seam between dumps and the crate that walks stacks.

#![forbid(unsafe_code)]

pub use crate::base::memory::read;
pub use crate::base::unwinder::{SavedContext, Symbol, Unwinder, install};
