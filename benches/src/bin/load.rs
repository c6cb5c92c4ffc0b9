//! Loads echo servers and compares them; `load --help` tells how.

mod servers;

use std::process::ExitCode;

fn main() -> ExitCode {
    fibra_bench::main(&servers::SERVERS)
}
