//! Does a second worker pay where connections come one by one and then all want work at once?
//!
//! `cargo run --release -p fibra-bench --bin trickle` connects 200 clients a millisecond apart, then lets all
//! of them ask at the same moment for about 20 milliseconds of computing each, in pieces with a `yield_now`
//! between them. Started tasks stay on their worker, so what is measured is whether they were spread when
//! they started. It prints the throughput of one worker and of two, which worker had how many connections,
//! and the ratio of the two. The client costs next to nothing: a byte to each connection, and a byte from
//! each.

use std::collections::HashMap;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use fibra::net::{TcpListener, TcpStream};

/// How many connections come, one a millisecond.
const CONNECTIONS: usize = 200;

/// How many steps one piece of a handler's work has: some 200 microseconds on a quiet core.
const STEPS: u64 = 100_000;

/// How many pieces a handler has to do.
const PIECES: usize = 100;

/// Each number of workers is measured so often, by turns, and the best counts: others may want the cores as
/// well.
const ROUNDS: usize = 3;

/// How many handlers ran on which thread.
type Homes = Arc<Mutex<HashMap<ThreadId, usize>>>;

fn main() -> io::Result<()> {
    let mut best = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        for (workers, best) in (1..).zip(&mut best) {
            let (seconds, homes) = measure(workers)?;
            println!("workers {workers}: {:8.0} pieces/s, homes {homes:?}", throughput(seconds));
            *best = best.min(seconds);
        }
    }
    let [one, two] = best.map(throughput);
    println!("one worker {one:.0} pieces/s, two workers {two:.0} pieces/s, ratio {:.2}", two / one);
    Ok(())
}

fn throughput(seconds: f64) -> f64 {
    (CONNECTIONS * PIECES) as f64 / seconds
}

/// Computes one piece. Each step depends on the one before, so nothing shortens it.
fn compute() {
    let step = |state: u64, step| black_box(state.wrapping_mul(6_364_136_223_846_793_005) ^ step);
    black_box((0..STEPS).fold(1, step));
}

/// The seconds from the client's first sign to the last reply, and how many connections each thread had.
fn measure(workers: usize) -> io::Result<(f64, Vec<usize>)> {
    let homes = Homes::default();
    let runtime = fibra::Runtime::builder().workers(workers).build()?;
    let seconds = runtime.run(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let client = thread::spawn(move || trickle(address));
        for _ in 0..CONNECTIONS {
            let (stream, _) = listener.accept()?;
            let homes = Arc::clone(&homes);
            fibra::spawn(move || handle(stream, &homes));
        }
        fibra::unblock(|| client.join()).unwrap_or_else(|_| Err(io::Error::other("the client panicked")))
    })?;
    let homes = homes.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((seconds, homes.values().copied().collect()))
}

/// Waits for the sign, computes, and replies.
fn handle(mut stream: TcpStream, homes: &Homes) -> io::Result<()> {
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    *homes.lock().unwrap_or_else(PoisonError::into_inner).entry(thread::current().id()).or_default() += 1;
    for _ in 0..PIECES {
        compute();
        fibra::yield_now();
    }
    stream.write_all(&byte)
}

/// Connects one by one, then gives the sign to all and waits for all replies. Returns the seconds of the
/// second half.
fn trickle(address: SocketAddr) -> io::Result<f64> {
    let connect = |_| {
        thread::sleep(Duration::from_millis(1));
        std::net::TcpStream::connect(address)
    };
    let mut streams = (0..CONNECTIONS).map(connect).collect::<io::Result<Vec<_>>>()?;
    thread::sleep(Duration::from_millis(20));
    let begin = Instant::now();
    streams.iter_mut().try_for_each(|stream| stream.write_all(&[1]))?;
    streams.iter_mut().try_for_each(|stream| stream.read_exact(&mut [0]))?;
    Ok(begin.elapsed().as_secs_f64())
}
