//! The driver seam: how a worker waits for the outside world.

#![forbid(unsafe_code)]

pub use crate::scheduler::driver::{Driver, Factory, Id, Parts, Ready, Unpark};
pub use crate::scheduler::driver_here::{current, current_id, unpinned};
