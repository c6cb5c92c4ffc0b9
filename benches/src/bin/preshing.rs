//! Prints Jeff Preshing's table of primitives with fibra's in it; `preshing --help` tells how.

use std::process::ExitCode;

fn main() -> ExitCode {
    fibra_bench::preshing::main()
}
