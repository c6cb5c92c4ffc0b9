//! Sets fibra beside its rivals; `compare --help` tells how.

mod servers;

use std::process::ExitCode;

fn main() -> ExitCode {
    fibra_bench::compare::main(&servers::SERVERS)
}
