//! The load-test harness of fibra: `cargo run --release -p fibra-bench --bin load`.
//!
//! | module | is |
//! | --- | --- |
//! | [`options`], `rates`, `sizes` | the command line |
//! | `campaign` | the order of events: every server, the cross-check, the report |
//! | [`figures`] | what fibra means to reach on the network: the program of that name |
//! | `run` | one server under load, watched |
//! | `servers`, `child`, `role` | processes: what they are, how they start, that they end |
//! | `generator` | the load, in a process of its own; speaks `wire` with the orchestrator |
//! | `compare` | fibra beside its rivals: the program of that name, with the feature `rivals` |
//! | `rival` | the rivals' servers, with that feature too |
//! | [`preshing`] | primitives against the semaphores of the system: the program of that name |
//! | [`process`], `sys` | what the system tells of a process and the machine; the only `unsafe` |
//! | `progress`, `terminal`, [`report`] | what a user sees: a bar, words, a table, a page, a file |
//! | `log` | latencies as HdrHistogram logs them, and one report of several such logs |
#![deny(unsafe_code)]

mod campaign;
mod child;
#[cfg(feature = "rivals")]
pub mod compare;
pub mod figures;
mod generator;
mod interrupt;
mod log;
pub mod options;
pub mod preshing;
pub mod process;
mod progress;
mod rates;
pub mod report;
#[cfg(feature = "rivals")]
pub mod rival;
mod role;
mod run;
mod servers;
mod sizes;
#[expect(unsafe_code, reason = "the one room for calls that std does not offer")]
mod sys;
mod terminal;
mod wire;

pub use campaign::main;
pub use servers::Server;
pub use wire::{Faults, Protocol};
