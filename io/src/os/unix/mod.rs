//! What Unix systems have.

pub use std::os::unix::{ffi, io, thread};

pub mod fs;
pub mod net;
pub mod process;
