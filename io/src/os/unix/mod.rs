//! What Unix systems have.

pub mod fs;
pub mod net;
