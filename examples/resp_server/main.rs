//! A key-value server that the clients of Redis can talk to: RESP2, pipelined, with values that expire.
//!
//! Run `cargo run --release --example resp_server -- 127.0.0.1:6379` (that address is the default), then in another terminal
//! `redis-cli set greeting hello ex 60`, `redis-benchmark -t set,get,incr -P 16`, or `nc localhost 6379` and type `GET
//! greeting`. Everything is kept in memory, without a limit. Press Ctrl-C: who has asked is answered, then the connections end.
//!
//! The environment variable `FIBRA_WORKERS` sets the number of worker threads, `PATIENCE_MS` how many milliseconds a client may
//! take to send a request that it has begun, or to take its answers (10,000 unless set). One that says nothing may stay.
//!
//! | file | holds |
//! | --- | --- |
//! | `parse.rs` | what has come, taken apart into requests, and the limits on them |
//! | `command.rs` | what each command does |
//! | `reply.rs` | the answers, as bytes |
//! | `store.rs` | keys, values, and when they expire |

mod command;
mod parse;
mod reply;
mod store;

use command::Then;
use fibra::net::{Shutdown, TcpListener, TcpStream};
use fibra::signal::{SIGINT, Signal};
use fibra::{TaskGroup, task, time};
use parse::Input;
use std::env;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use store::Store;

/// How much is thrown away at the most of what comes after the last answer.
const REST: u64 = 4 << 20;
/// Answers are sent when there are so many bytes of them, also while more requests are there.
const ENOUGH: usize = 64 * 1024;
/// How often what has expired is thrown away.
const SWEEP: Duration = Duration::from_millis(100);

fn main() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:6379".to_owned());
    let patience = env::var("PATIENCE_MS").ok().and_then(|millis| millis.parse().ok()).unwrap_or(10_000);
    let patience = Duration::from_millis(patience);
    fibra::run(|| {
        let interrupt = Signal::new(SIGINT)?;
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
        // It reaches each where it waits for a request.
        connections.cancel_all();
        connections.join_all();
        println!("{} keys are forgotten", store.counts().0);
        Ok(())
    })
}

/// Takes connections until it is cancelled.
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
                // Out of descriptors, most likely: some connection will end and free one.
                eprintln!("accept: {error}");
                fibra::sleep(Duration::from_millis(10));
            }
        }
        // That a client goes away is its own affair.
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

/// Serves one connection to its end.
fn connection(mut stream: TcpStream, store: &Store, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut input, mut output) = (Input::new(), Vec::new());
    // When a request must be complete of which a part is there.
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

/// Ends a connection so that its last answer is heard. A socket that is closed over something unread sends a reset, which may
/// overtake the answer: so the end is told first, and what still comes is thrown away, within limits.
fn end(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    fibra::timeout(patience, || io::copy(&mut stream.take(REST), &mut io::sink()).map(drop))?
}

/// What to do once the answers are sent.
enum Next {
    Read,
    Again,
    Close,
}

/// Answers every request that is complete.
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
