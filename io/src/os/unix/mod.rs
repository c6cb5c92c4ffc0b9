//! What Unix systems have.

pub mod net;
