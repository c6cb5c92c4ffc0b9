//! The seam between workers and the crate that makes traces of them.

#![forbid(unsafe_code)]

pub use crate::runtime::recording::{Recorded, Recording};
pub use crate::scheduler::event::Event;
pub use crate::scheduler::trace::{span_begins, span_ends};
