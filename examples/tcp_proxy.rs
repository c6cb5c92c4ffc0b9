//! A proxy: carries whatever its clients send to another server, and what that answers back to them.
//!
//! Run `cargo run --example echo_server 127.0.0.1:7777`, then `cargo run --example tcp_proxy 127.0.0.1:7777 127.0.0.1:8888`,
//! and talk to it with `nc 127.0.0.1 8888`. Press Ctrl-C: it takes no more connections, lets those that are there end within
//! two seconds, or as many milliseconds as the environment variable `GRACE_MS` says, cuts off the others, and says how many
//! there were.

use fibra::io::{self, copy_bidirectional};
use fibra::net::{TcpListener, TcpStream};
use fibra::signal::{SIGINT, Signal};
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
    fibra::run(|| {
        let interrupt = Signal::new(SIGINT)?;
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
        let (ended, cut_off) = serve(listener, &server, &stop, grace);
        println!("{ended} connections ended by themselves, {cut_off} were cut off");
        waiter.cancel();
        Ok(())
    })
}

/// Serves until it is told to stop, and says how many connections ended by themselves and how many did not.
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
                    // Out of descriptors, most likely: some connection will end and free one.
                    eprintln!("accept: {error}");
                    fibra::sleep(Duration::from_millis(10));
                }
            }
            // That one of them goes away is their own affair.
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

/// One connection, both ways; dropping the streams closes them.
fn carry(client: &TcpStream, server: &str) -> io::Result<(u64, u64)> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    copy_bidirectional(client, &server)
}
