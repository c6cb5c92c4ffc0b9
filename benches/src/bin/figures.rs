//! Prints the figures of the network that fibra means to reach, and whether it does; `figures --help` tells
//! how.

mod servers;

use std::process::ExitCode;

fn main() -> ExitCode {
    fibra_bench::figures::main(&servers::SERVERS)
}
