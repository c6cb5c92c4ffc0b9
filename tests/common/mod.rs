//! What the tests of whole programs share: the examples as processes, clients that are std's and nothing of ours, and a
//! proxy between them that does harm.
#![allow(
    dead_code,
    unused_imports,
    clippy::allow_attributes,
    reason = "each test binary uses what it needs; an expectation would fail in the one that uses all"
)]

pub(crate) mod client;
pub(crate) mod corpus;
pub(crate) mod example;
pub(crate) mod faulty;
pub(crate) mod fuzz;
#[path = "../../runtime/tests/common/hang.rs"]
mod hang;
pub(crate) mod http;
pub(crate) mod line;
pub(crate) mod resp;
pub(crate) mod server;
#[cfg(feature = "tls-examples")]
pub(crate) mod tls;
#[cfg(feature = "websocket-examples")]
pub(crate) mod websocket;

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use hang::hang_guard;

/// What takes longer than this hangs. Far above what anything here needs on a busy machine.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// The longest payload, in bytes; more than sockets hold.
pub(crate) const MOST: usize = 64 << 20;

/// How long servers wait for slow clients, in milliseconds, where there are none.
pub(crate) const PATIENCE: &str = "60000";

/// How much resident memory may vary for no fault of the server, in KiB.
pub(crate) const NOISE: usize = 4 << 10;

/// After so long without a byte taken, a peer is said to take no more.
pub(crate) const STUCK: Duration = Duration::from_millis(200);

/// Waits, as a task or as a thread, until `reached` gives something; panics with what it said last if that takes too long.
pub(crate) fn until<T>(mut reached: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        let lacking = match reached() {
            Ok(reached) => return reached,
            Err(lacking) => lacking,
        };
        assert!(begun.elapsed() < HANG, "still after {HANG:?}: {lacking}");
        match fibra::wait::in_task() {
            true => fibra::sleep(Duration::from_millis(10)),
            false => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// How many descriptors a process has open, by its number or as `self`.
pub(crate) fn descriptors(process: impl Display) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).expect("the process runs").count()
}

/// How much of the memory of a process is resident, in KiB; by its number or as `self`.
pub(crate) fn resident(process: impl Display) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its resident memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number of KiB")
}

/// Raises the limit of open descriptors as far as it goes. Tells how many of `wanted` there is room for beside so many others,
/// and says, also where the output of tests is kept from the reader, if these are not all.
pub(crate) fn room_for(wanted: usize, others: usize) -> usize {
    let limit = allow_descriptors();
    let most = wanted.min(limit.saturating_sub(others));
    if most < wanted {
        _ = writeln!(io::stderr(), "only {most}, not {wanted}: no more than {limit} descriptors are allowed");
    }
    most
}

/// Raises the limit of open descriptors, which children inherit, as far as it goes. Tells how far that is.
pub(crate) fn allow_descriptors() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable and outlives the call.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the structure is valid and outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    usize::try_from(limit.rlim_max).unwrap_or(usize::MAX)
}

/// Tests servers with one worker and with two, at once: much of the time is spent on waits.
pub(crate) fn both(test: impl Fn(usize) + Sync) {
    thread::scope(|threads| {
        threads.spawn(|| test(2));
        test(1);
    });
}

/// Runs a task on so many workers.
pub(crate) fn on<T: Send>(workers: usize, task: impl FnOnce() -> T + Send) -> T {
    fibra::Runtime::builder().workers(workers).build().expect("a runtime").run(task)
}
