//! The servers of the rivals, their command line, and the line that says where they listen.
//!
//! | file | holds |
//! | --- | --- |
//! | `echo.rs` | echo servers |
//! | `http.rs` | servers that answer with a page of plain text |

pub mod echo;
pub mod http;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::{env, thread};

/// A server that is written with a rival, as users of the rival write it.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The name on command lines.
    pub name: &'static str,
    /// Listens at an address, says where in its first line, and serves until the process ends.
    pub serve: fn(address: &str) -> io::Result<()>,
}

impl Service {
    /// Serves at `address` until the process ends.
    #[must_use]
    pub fn run(&self, address: &str) -> ExitCode {
        match (self.serve)(address) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}: {error}", self.name);
                ExitCode::FAILURE
            }
        }
    }
}

/// The `main` of `program`, which serves as one of these at an address, of a free port unless one is asked
/// for.
#[must_use]
pub fn main(program: &str, services: &[Service]) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let named = |name: &String| services.iter().find(|service| service.name == name);
    let (service, address) = match &arguments[..] {
        [name] => (named(name), "127.0.0.1:0"),
        [name, address] => (named(name), address.as_str()),
        _ => (None, ""),
    };
    match service {
        Some(service) => service.run(address),
        None => {
            let names: Vec<_> = services.iter().map(|service| service.name).collect();
            eprintln!("usage: {program} {} [ADDRESS]", names.join("|"));
            ExitCode::from(2)
        }
    }
}

/// Returns the number of workers: one for each processor that the process may use.
fn workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Prints the address at which the server listens.
///
/// # Errors
/// When standard output is closed.
pub(crate) fn greet(address: SocketAddr) -> io::Result<()> {
    println!("listening on {address}");
    io::stdout().flush()
}
