//! A key-value server for the clients of Redis: RESP2, pipelined, with values that expire.
//!
//! Run `cargo run --release --example resp_server -- 127.0.0.1:6379` (the default address), then in another
//! terminal `redis-cli set greeting hello ex 60`, `redis-benchmark -t set,get,incr -P 16`, or `nc localhost
//! 6379` and type `GET greeting`. All values are in memory, without a limit. Press Ctrl-C: complete requests
//! are answered, then the connections end.
//!
//! The environment variable `FIBRA_WORKERS` sets the number of workers. `PATIENCE_MS` sets how many
//! milliseconds a client may take to finish a request, or to read its answers (default 10,000). A silent
//! client may stay.
//!
//! | file | holds |
//! | --- | --- |
//! | `parse.rs` | the parser of requests, and the limits on them |
//! | `command.rs` | the commands |
//! | `reply.rs` | the answers, as bytes |
//! | `store.rs` | keys, values, and expiry |

mod command;
mod parse;
mod reply;
mod store;

use command::Then;
use fibra::net::{Shutdown, TcpListener, TcpStream};
use fibra::signal::{SIGINT, Signal, exit_on_repeat};
use fibra::{TaskGroup, task, time};
use parse::Input;
use std::env;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use store::Store;

/// The most bytes that are discarded after the last answer.
const REST: u64 = 4 << 20;
/// Answers are sent at this many bytes, even if more requests are complete.
const ENOUGH: usize = 64 * 1024;
/// The interval between removals of expired values.
const SWEEP: Duration = Duration::from_millis(100);

fn main() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:6379".to_owned());
    let patience = env::var("PATIENCE_MS").ok().and_then(|millis| millis.parse().ok()).unwrap_or(10_000);
    let patience = Duration::from_millis(patience);
    println!("{} keys are forgotten", fibra::run(|| serve(&address, patience))?);
    Ok(())
}

/// Serves until Ctrl-C, and returns how many keys there were.
pub(crate) fn serve(address: &str, patience: Duration) -> io::Result<usize> {
    let interrupt = Signal::new(SIGINT)?;
    exit_on_repeat(SIGINT)?;
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    io::stdout().flush()?;
    let store = Arc::new(Store::new());
    let connections = TaskGroup::new();
    let sweeper = fibra::spawn({
        let store = Arc::clone(&store);
        move || sweep(&store)
    });
    fibra::race(|| accept(&listener, &connections, &store, patience), || interrupt.recv());
    drop(listener);
    sweeper.cancel();
    // The cancel reaches each connection where it waits for a request.
    connections.cancel_all();
    connections.join_all();
    Ok(store.counts().0)
}

/// Accepts connections until it is cancelled.
fn accept(
    listener: &TcpListener,
    connections: &TaskGroup<io::Result<()>>,
    store: &Arc<Store>,
    patience: Duration,
) -> ! {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let store = Arc::clone(store);
                connections.spawn(move || connection(stream, &store, patience));
            }
            Err(error) => {
                // Most likely no descriptor is left: a connection that ends frees one.
                eprintln!("accept: {error}");
                fibra::sleep(Duration::from_millis(10));
            }
        }
        // A client that disconnects is no error of the server.
        while connections.try_join_next().is_some() {}
    }
}

fn sweep(store: &Store) -> ! {
    let mut ticks = time::interval(SWEEP);
    loop {
        ticks.tick();
        store.sweep();
    }
}

/// Serves one connection.
fn connection(mut stream: TcpStream, store: &Store, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut input, mut output) = (Input::new(), Vec::new());
    // The deadline of a request that has begun.
    let mut due = None;
    loop {
        let next = answer(&mut input, store, &mut output);
        if !output.is_empty() {
            due = None;
            stream.set_write_deadline(time::deadline(patience));
            task::shield(|| stream.write_all(&output))?;
            output.clear();
            output.shrink_to(2 * ENOUGH);
        }
        match next {
            Next::Close => return end(&stream, patience),
            Next::Again => continue,
            Next::Read => {}
        }
        due = match input.is_begun() {
            true => due.or_else(|| time::deadline(patience)),
            false => None,
        };
        stream.set_read_deadline(due);
        match stream.read(input.room())? {
            0 => return Ok(()),
            count => input.add(count),
        }
    }
}

/// Closes a connection after its last answer has arrived.
///
/// Closing a socket with unread bytes sends a reset, which may overtake the answer. So this shuts down the
/// writing side first and discards, within limits, what the client still sends.
fn end(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    fibra::timeout(patience, || io::copy(&mut stream.take(REST), &mut io::sink()).map(drop))?
}

/// The next step once the answers are sent.
enum Next {
    Read,
    Again,
    Close,
}

/// Answers every complete request.
fn answer(input: &mut Input, store: &Store, output: &mut Vec<u8>) -> Next {
    while output.len() < ENOUGH {
        match input.next() {
            Ok(Some(request)) => match command::answer(store, request, output) {
                Then::GoOn => {}
                Then::Close => return Next::Close,
            },
            Ok(None) => return Next::Read,
            Err(malformed) => {
                reply::error(output, format_args!("Protocol error: {malformed}"));
                return Next::Close;
            }
        }
    }
    Next::Again
}
