//! Limits of the process, as errors that name them.

pub use crate::base::limit::Refusal;
