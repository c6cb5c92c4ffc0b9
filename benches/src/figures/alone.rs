//! Figures of a server alone: idle connections, system calls, a short sleep.

use super::pairs::{FIBRA, median};
use crate::campaign::Campaign;
use crate::process::Usage;
use crate::servers::Running;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The number of silent connections.
pub(super) const IDLE: u32 = 1000;

/// How long an idle server is watched, and how long it may take to settle before.
const WATCHED: Duration = Duration::from_secs(2);
const SETTLE: Duration = Duration::from_millis(500);

/// How long the server is loaded for `strace`, which makes it many times slower, and after what time that
/// begins to look: the connections have been made by then.
const LOADED: Duration = Duration::from_secs(3);
const CONNECTED: Duration = Duration::from_secs(1);

/// Returns the percentage of a core that fibra's server uses without requests.
pub(super) fn idle(campaign: &Campaign) -> io::Result<f64> {
    let server = Running::start(FIBRA, campaign.places.server, &campaign.interrupt)?;
    let connect = |_| TcpStream::connect(server.address);
    let connections = (0..IDLE).map(connect).collect::<io::Result<Vec<_>>>()?;
    campaign.interrupt.sleep(SETTLE)?;
    let (before, begin) = (used(&server)?, Instant::now());
    campaign.interrupt.sleep(WATCHED)?;
    let (after, elapsed) = (used(&server)?, begin.elapsed());
    drop(connections);
    Ok((after - before).as_secs_f64() / elapsed.as_secs_f64() * 100.0)
}

fn used(server: &Running) -> io::Result<Duration> {
    let usage = server.id().and_then(Usage::of);
    usage.map(|usage| usage.cpu).ok_or_else(|| io::Error::other("the idle server is gone"))
}

/// By how many microseconds a task that is alone wakes too late from a sleep of 50 µs: the median of 500.
pub(super) fn lateness() -> io::Result<f64> {
    let runtime = fibra::Runtime::builder().workers(1).build()?;
    let duration = Duration::from_micros(50);
    let sleep = |_| {
        let begin = Instant::now();
        fibra::sleep(duration);
        begin.elapsed().saturating_sub(duration).as_secs_f64() * 1e6
    };
    Ok(median(&runtime.run(|| (0..500).map(sleep).collect::<Vec<_>>())))
}

/// How many system calls the server of that name makes for each of its requests, once its connections are
/// there.
pub(super) fn calls_per_request(campaign: &mut Campaign, name: &str) -> io::Result<f64> {
    (campaign.options.connections, campaign.options.pipeline) = (64, 1);
    let mut server = Running::start(name, campaign.places.server, &campaign.interrupt)?;
    let id = server.id().ok_or(ErrorKind::NotFound)?.to_string();
    let (alive, ended) = mpsc::channel::<()>();
    let trace = move || match ended.recv_timeout(CONNECTED) {
        Err(RecvTimeoutError::Timeout) => {
            let mut strace = Command::new("strace");
            strace.args(["-f", "-c", "-p", &id]).stdin(Stdio::null()).output()
        }
        _ => Err(io::Error::other("the server ended before")),
    };
    let summary = thread::scope(|scope| {
        let tracer = scope.spawn(trace);
        let finished = campaign.watch(&mut server, "strace", LOADED);
        drop(alive);
        // The tracer ends with the server.
        drop(server);
        let summary = tracer.join().expect("the tracer does not panic");
        campaign.interrupt.check()?;
        match finished?.errors.first() {
            Some(error) => Err(io::Error::other(error.clone())),
            None => summary.map_err(|error| io::Error::new(error.kind(), format!("strace: {error}"))),
        }
    })?;
    let calls = Calls::of(&String::from_utf8_lossy(&summary.stderr));
    match calls.sends {
        0 => Err(io::Error::other("strace saw nothing, or may not look")),
        sends => Ok(calls.all as f64 / sends as f64),
    }
}

/// The counts of strace.
#[derive(PartialEq, Eq, Debug)]
struct Calls {
    all: u64,
    /// Each of them is a reply.
    sends: u64,
}

impl Calls {
    /// The sums of the column `calls`: the share, the seconds, the microseconds for each call, the calls,
    /// some errors, a name.
    fn of(summary: &str) -> Self {
        let mut sums = Calls { all: 0, sends: 0 };
        for line in summary.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (true, Some(&name)) = (fields.len() >= 5 && fields[0].parse::<f64>().is_ok(), fields.last())
            else {
                continue;
            };
            let calls = fields[3].parse::<u64>().unwrap_or(0);
            match name {
                "total" => continue,
                "sendto" => sums.sends += calls,
                _ => {}
            }
            sums.all += calls;
        }
        sums
    }
}

#[cfg(test)]
mod tests;
