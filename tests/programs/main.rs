//! The examples as programs, met by clients and by faults.

#[path = "../common/mod.rs"]
mod common;

mod echo_faults;
mod examples;
mod faults;
mod malformed;
mod resp_server;
