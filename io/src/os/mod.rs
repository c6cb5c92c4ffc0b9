//! What only some systems have, at the paths where std has it: `std::os::linux::net` is `os::linux::net` here.

#[cfg(any(target_os = "linux", target_os = "android"))]
pub mod linux;

#[cfg(unix)]
pub mod unix;

pub use std::os::fd;
