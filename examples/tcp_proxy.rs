//! A TCP proxy: forwards each connection to another server, in both directions.
//!
//! Run `cargo run --example echo_server 127.0.0.1:7777`, then `cargo run --example tcp_proxy 127.0.0.1:7777
//! 127.0.0.1:8888`, and talk to it with `nc 127.0.0.1 8888`. Press Ctrl-C: the proxy accepts no more
//! connections, gives the open ones two seconds (or the milliseconds of the environment variable `GRACE_MS`),
//! closes the rest, and says how many there were.

use fibra::io::{self, copy_bidirectional};
use fibra::net::{TcpListener, TcpStream};
use fibra::signal::{SIGINT, Signal, exit_on_repeat};
use fibra::{CancelToken, TaskGroup};
use std::cell::Cell;
use std::env;
use std::iter;
use std::time::Duration;

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let server = arguments.next().unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8888".to_owned());
    let grace = env::var("GRACE_MS").ok().and_then(|millis| millis.parse().ok()).unwrap_or(2000);
    let grace = Duration::from_millis(grace);
    let (ended, cut_off) = fibra::run(|| forward(&address, &server, grace))?;
    println!("{ended} connections ended by themselves, {cut_off} were cut off");
    Ok(())
}

/// Forwards the connections to an address until Ctrl-C, and returns what [`serve`] does.
pub(crate) fn forward(address: &str, server: &str, grace: Duration) -> io::Result<(usize, usize)> {
    let interrupt = Signal::new(SIGINT)?;
    exit_on_repeat(SIGINT)?;
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    let stop = CancelToken::new();
    let waiter = {
        let stop = stop.clone();
        fibra::spawn(move || {
            interrupt.recv();
            stop.cancel();
        })
    };
    let counts = serve(listener, server, &stop, grace);
    waiter.cancel();
    Ok(counts)
}

/// Serves until the stop signal. Returns how many connections ended by themselves and how many did not.
fn serve(listener: TcpListener, server: &str, stop: &CancelToken, grace: Duration) -> (usize, usize) {
    let connections = TaskGroup::new();
    let ended = Cell::new(0);
    _ = stop.scope(|| {
        loop {
            match listener.accept() {
                Ok((client, _)) => {
                    let server = server.to_owned();
                    connections.spawn(move || carry(&client, &server));
                }
                Err(error) => {
                    // Most likely no descriptor is left: a connection that ends frees one.
                    eprintln!("accept: {error}");
                    fibra::sleep(Duration::from_millis(10));
                }
            }
            // A side that disconnects is no error of the proxy.
            ended.update(|ended| ended + iter::from_fn(|| connections.try_join_next()).count());
        }
    });
    drop(listener);
    _ = fibra::timeout(grace, || {
        while connections.join_next().is_some() {
            ended.update(|ended| ended + 1);
        }
    });
    connections.cancel_all();
    (ended.get(), connections.join_all().len())
}

/// Forwards one connection in both directions. Dropping the streams closes them.
fn carry(client: &TcpStream, server: &str) -> io::Result<(u64, u64)> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    copy_bidirectional(client, &server)
}
