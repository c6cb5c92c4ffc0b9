//! The paths whose instructions `ci/counts.sh` counts: `counts PATH N` goes N times along one of them, and no
//! more than that.
//!
//! All run on one worker. The echo server has its client in a process of its own, which valgrind does not
//! follow, so that what is counted is the server's. It begins each round when all requests of the round have
//! been sent: how many of them one look at the kernel finds is otherwise a matter of what else the machine
//! does. `counts` alone prints the names of the paths with what each time is.

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::num::NonZero;
use std::process::{ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use fibra::net::{TcpListener, TcpStream};
use fibra::sync::channel::{Receiver, Sender, bounded};
use fibra::sync::{AutoResetEvent, Mutex};

/// Beyond every run.
const FAR: Duration = Duration::from_secs(3600);

/// The room of the channel for many.
const SLOTS: usize = 128;

/// Clients of the echo server, and the bytes of a request.
const CLIENTS: u64 = 64;
const REQUEST: usize = 64;

/// The name by which the program starts itself as the echo server's clients.
const CLIENT: &str = "client";

/// A path by name: what one time is, and the path so many times.
type Path = (&'static str, &'static str, fn(u64));

const PATHS: [Path; 10] = [
    ("yield", "one of two tasks yields to the other", yields),
    ("lock", "a free mutex is locked and unlocked", locks),
    ("spawn", "a task is spawned and joined", spawns),
    ("item", "a number goes through a channel of 128 slots", items),
    ("event", "two tasks wake each other by events, there and back", events),
    ("slot", "two tasks send to each other over one slot, there and back", slots),
    ("clock", "the clock of tasks and timers is read", clocks),
    ("timeout", "a timeout around what does not wait", timeouts),
    ("scope", "a scope of two children", scopes),
    ("echo", "the server answers a request of 64 bytes, of 64 connections", echoes),
];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => PATHS.iter().for_each(|(name, about, _)| println!("{name}: {about}")),
        [CLIENT, address, times] => ask(address.parse()?, times.parse()?)?,
        [name, times] => match (PATHS.iter().find(|path| path.0 == name), times.parse::<NonZero<u64>>()) {
            (Some(&(_, _, path)), Ok(times)) => {
                let runtime = fibra::Runtime::builder().workers(1).build().expect("a thread for the worker");
                runtime.run(|| path(times.get()));
            }
            _ => return Ok(usage()),
        },
        _ => return Ok(usage()),
    }
    Ok(ExitCode::SUCCESS)
}

fn usage() -> ExitCode {
    eprintln!("usage: counts [PATH N]");
    ExitCode::from(2)
}

/// Runs two closures as two tasks of the worker, to the end of both.
fn both(one: impl FnOnce() + Send + 'static, other: impl FnOnce() + Send + 'static) {
    let handles = [fibra::spawn(one), fibra::spawn(other)];
    handles.into_iter().for_each(|handle| handle.join().expect("no task panics"));
}

fn yields(times: u64) {
    let turns = move || (0..times / 2).for_each(|_| fibra::yield_now());
    both(turns, turns);
}

fn locks(times: u64) {
    let mutex = black_box(Mutex::new(0_u64));
    (0..times).for_each(|_| *mutex.lock() += 1);
}

fn spawns(times: u64) {
    (0..times).for_each(|number| _ = black_box(fibra::spawn(move || number).join().expect("no task panics")));
}

fn items(times: u64) {
    let (sender, receiver) = bounded(SLOTS);
    let send = move || (0..times).for_each(|number| sender.send(number).expect("the receiver lives"));
    both(send, move || receiver.iter().for_each(|number| _ = black_box(number)));
}

fn events(times: u64) {
    let [there, back] = [(); 2].map(|()| Arc::new(AutoResetEvent::new(false)));
    let (arrived, returned) = (Arc::clone(&there), Arc::clone(&back));
    let pass = |set: &AutoResetEvent, wait: &AutoResetEvent| {
        set.set();
        wait.wait();
    };
    both(
        move || (0..times).for_each(|_| pass(&there, &returned)),
        move || {
            arrived.wait();
            (1..times).for_each(|_| pass(&back, &arrived));
            back.set();
        },
    );
}

fn slots(times: u64) {
    let (there, arrived) = bounded(1);
    let (back, returned) = bounded(1);
    let send = |sender: &Sender<u64>, number| sender.send(number).expect("the other end lives");
    let receive = |receiver: &Receiver<u64>| receiver.recv().expect("the other end lives");
    let asking = move || {
        (0..times).for_each(|number| {
            send(&there, number);
            black_box(receive(&returned));
        });
    };
    both(asking, move || (0..times).for_each(|_| send(&back, receive(&arrived))));
}

fn clocks(times: u64) {
    (0..times).for_each(|_| _ = black_box(fibra::time::now()));
}

fn timeouts(times: u64) {
    (0..times).for_each(|number| _ = black_box(fibra::timeout(FAR, || black_box(number))));
}

fn scopes(times: u64) {
    (0..times).for_each(|number| {
        let number = black_box(number);
        fibra::scope(|scope| {
            scope.spawn(|| black_box(number));
            scope.spawn(|| black_box(number));
        });
    });
}

fn echoes(times: u64) {
    let serve = || -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut client = Command::new(env::current_exe()?);
        client.args([CLIENT, &listener.local_addr()?.to_string(), &times.to_string()]).stdout(Stdio::piped());
        let mut client = client.spawn()?;
        let rounds =
            Rounds { sent: Mutex::new(client.stdout.take().expect("a pipe")), answered: AtomicU64::new(0) };
        fibra::scope(|scope| {
            for _ in 0..CLIENTS {
                let (stream, _) = listener.accept()?;
                scope.spawn(|| echo(stream, &rounds).expect("the client ends in order"));
            }
            rounds.next()
        })?;
        assert!(fibra::unblock(|| client.wait())?.success(), "the client has its replies");
        Ok(())
    };
    serve().expect("loopback works");
}

/// The rounds of the clients, each of a request on every connection.
struct Rounds {
    /// A byte for each round that has been sent.
    sent: Mutex<ChildStdout>,
    answered: AtomicU64,
}

impl Rounds {
    /// Keeps the worker until the next round has been sent, or there is none.
    fn next(&self) -> io::Result<()> {
        self.sent.lock().read(&mut [0]).map(drop)
    }

    fn answered_one(&self) -> io::Result<()> {
        match (self.answered.fetch_add(1, Relaxed) + 1) % CLIENTS {
            0 => self.next(),
            _ => Ok(()),
        }
    }
}

/// Sends back what comes, until the client has closed its side: what the example `echo_server` does.
fn echo(mut stream: TcpStream, rounds: &Rounds) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            n => stream.write_all(&buffer[..n])?,
        }
        rounds.answered_one()?;
    }
}

/// The clients, one thread for all: asks on each connection, tells it, then takes all the replies.
fn ask(address: SocketAddr, times: u64) -> io::Result<()> {
    let connect = |_| std::net::TcpStream::connect(address);
    let mut streams = (0..CLIENTS).map(connect).collect::<io::Result<Vec<_>>>()?;
    let (request, mut reply) = ([7; REQUEST], [0; REQUEST]);
    let mut told = io::stdout();
    for _ in 0..times / CLIENTS {
        streams.iter_mut().try_for_each(|stream| stream.write_all(&request))?;
        told.write_all(b"\n")?;
        streams.iter_mut().try_for_each(|stream| stream.read_exact(&mut reply))?;
    }
    Ok(())
}
