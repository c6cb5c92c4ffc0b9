//! The TLS examples.

#[path = "../common/mod.rs"]
mod common;

mod echo;
mod faults;
mod https_get;
mod lines;
