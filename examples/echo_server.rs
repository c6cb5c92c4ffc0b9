//! An echo server with a task for each connection: the source of `echo_threads` at the cost of an event loop.
//!
//! Run `cargo run --release --example echo_server -- 127.0.0.1:7777` (the default address), then `nc
//! 127.0.0.1 7777` in another terminal: each line that you type comes back. The environment variable
//! `FIBRA_WORKERS` sets the number of worker threads. Compare the source with `echo_threads`, line by line.

use fibra::net::{TcpListener, TcpStream};
use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

fn main() -> io::Result<()> {
    fibra::run(serve)
}

fn serve() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    io::stdout().flush()?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => start(stream),
            Err(error) => {
                // Most likely no descriptor is left: a connection that ends frees one.
                eprintln!("accept: {error}");
                fibra::sleep(Duration::from_millis(10));
            }
        }
    }
}

fn start(stream: TcpStream) {
    fibra::spawn(move || report(echo(stream)));
}

/// Sends received bytes back until the client closes its side.
fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            n => stream.write_all(&buffer[..n])?,
        }
    }
}

/// Prints the error that ended a connection, unless the client disconnected.
fn report(outcome: io::Result<()>) {
    let Err(error) = outcome else { return };
    if !matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) {
        eprintln!("connection: {error}");
    }
}
