//! Limits of the process, as errors that name them.

#![forbid(unsafe_code)]

pub use crate::base::limit::Refusal;
