//! What the programs that serve as the rivals do have in common: their command line, and the line that says where they listen.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::{env, thread};

/// The `main` of `program`. `serve` gets the name of a rival, as `rivals` lists them for the usage, and an address, of a free port
/// unless one was asked for; it gives `None` where it knows no such rival.
pub fn main(
    program: &str,
    rivals: &str,
    serve: impl FnOnce(&str, &str) -> Option<io::Result<()>>,
) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let served = match &arguments[..] {
        [rival] => serve(rival, "127.0.0.1:0"),
        [rival, address] => serve(rival, address),
        _ => None,
    };
    match served {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("usage: {program} {rivals} [ADDRESS]");
            ExitCode::from(2)
        }
    }
}

/// As many workers as there are processors for the process.
pub fn workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Says where the server listens.
///
/// # Errors
/// When nobody hears it.
pub fn greet(address: SocketAddr) -> io::Result<()> {
    println!("listening on {address}");
    io::stdout().flush()
}
