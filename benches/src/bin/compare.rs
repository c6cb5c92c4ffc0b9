//! Sets fibra beside those whom its users would take instead; `compare --help` tells how.

mod servers;

use std::process::ExitCode;

fn main() -> ExitCode {
    fibra_bench::compare::main(&servers::SERVERS)
}
