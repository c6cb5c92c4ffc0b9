//! Shows what the tasks of another process do, or did when it left a core file.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use fibra_tools::dump::Dump;
use fibra_tools::printable::printable;

/// Shows what the tasks of another process do, or did when it left a core file.
#[derive(Parser)]
struct Options {
    /// The process to look at. Its threads are stopped for a moment.
    #[arg(long, required_unless_present = "core", conflicts_with = "core")]
    pid: Option<i32>,
    /// The core file to look at.
    #[arg(long)]
    core: Option<PathBuf>,
    /// The program that has left the core, if it is not where it was.
    #[arg(long, requires = "core")]
    exe: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let dump = match (options.pid, &options.core) {
        (Some(pid), _) => Dump::of_process(pid),
        (None, Some(core)) => Dump::of_core(core, options.exe.as_deref()),
        (None, None) => unreachable!("one of both is required"),
    };
    let shown =
        dump.and_then(|dump| write!(io::stdout().lock(), "{dump}").map_err(|error| error.to_string()));
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fibra-dump: {}", printable(&error));
            ExitCode::FAILURE
        }
    }
}
