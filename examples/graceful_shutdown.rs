//! A server that stops gracefully: it refuses new connections, finishes quick requests, and cancels the rest.
//!
//! Run `cargo run --example graceful_shutdown`. Three clients ask for work of 10 milliseconds, 100
//! milliseconds and a minute; then the server gets the stop signal. You see two clients get their answers,
//! the third one disconnected at the end of the grace period, a late client refused, and a report.

use fibra::net::{TcpListener, TcpStream};
use fibra::sync::WaitGroup;
use fibra::{CancelToken, TaskGroup};
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::iter;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const GRACE: Duration = Duration::from_secs(2);

fn main() -> io::Result<()> {
    fibra::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (stop, begun) = (CancelToken::new(), Arc::new(WaitGroup::new()));
        begun.add(3);
        let server = {
            let (stop, begun) = (stop.clone(), Arc::clone(&begun));
            fibra::spawn(move || serve(listener, &stop, &begun))
        };
        let clients = [10, 100, 60_000].map(|millis| fibra::spawn(move || ask(address, millis)));
        begun.wait();
        // A signal handler would do the same.
        stop.cancel();
        println!("{}", server.join().expect("the server does not panic"));
        for client in clients {
            match client.join().expect("no client panics") {
                Ok(answer) if !answer.is_empty() => println!("a client was answered: {answer}"),
                _ => println!("a client was cut off"),
            }
        }
        println!("who comes later is {}", if ask(address, 1).is_err() { "refused" } else { "served" });
        Ok(())
    })
}

/// Serves until the stop signal, and reports how the connections ended.
pub(crate) fn serve(listener: TcpListener, stop: &CancelToken, begun: &Arc<WaitGroup>) -> String {
    let connections = TaskGroup::new();
    let ended = Cell::new(0);
    _ = stop.scope(|| {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let begun = Arc::clone(begun);
                    connections.spawn(move || answer(stream, &begun));
                }
                Err(error) => {
                    // Most likely no descriptor is left: a connection that ends frees one.
                    eprintln!("accept: {error}");
                    fibra::sleep(Duration::from_millis(10));
                }
            }
            // Otherwise the group would keep the results of all ended tasks.
            ended.update(|ended| ended + iter::from_fn(|| connections.try_join_next()).count());
        }
    });
    drop(listener);
    _ = fibra::timeout(GRACE, || {
        while connections.join_next().is_some() {
            ended.update(|ended| ended + 1);
        }
    });
    connections.cancel_all();
    let (ended, cancelled) = (ended.get(), connections.join_all().len());
    format!("{ended} requests ended by themselves, {cancelled} had to be cancelled")
}

/// Works for the milliseconds that the client asks for.
fn answer(mut stream: TcpStream, begun: &WaitGroup) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    begun.done();
    fibra::sleep(Duration::from_millis(line.trim().parse().map_err(io::Error::other)?));
    write!(stream, "worked for {} ms", line.trim())
}

pub(crate) fn ask(address: SocketAddr, millis: u64) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    writeln!(stream, "{millis}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
