//! The websocket examples.

#[path = "../common/mod.rs"]
mod common;

mod echo;
mod faults;
mod lines;
