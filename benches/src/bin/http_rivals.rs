//! HTTP servers of the rivals, for `benches/wrk.sh` to set beside the example `http_server`: `http_rivals
//! RIVAL [ADDRESS]`, where RIVAL is `may_minihttp` or `hyper`. The first line says where it listens.

use std::process::ExitCode;

use fibra_bench::rival::{self, http};

fn main() -> ExitCode {
    rival::main("http_rivals", &http::SERVICES)
}
