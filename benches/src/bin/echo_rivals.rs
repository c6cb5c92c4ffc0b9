//! Echo servers of the rivals, for `load` to set beside fibra's: `echo_rivals RIVAL [ADDRESS]`, where RIVAL
//! is `tokio-current`, `tokio-multi`, `smol` or `may`. The first line says where it listens.

use std::process::ExitCode;

use fibra_bench::rival::{self, echo};

fn main() -> ExitCode {
    rival::main("echo_rivals", &echo::SERVICES)
}
