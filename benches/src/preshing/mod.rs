//! Jeff Preshing's table of primitives, with fibra's in it: `cargo run --release -p fibra-bench --bin
//! preshing`.
//!
//! In "Semaphores are Surprisingly Versatile" (2015,
//! <https://preshing.com/20150316/semaphores-are-surprisingly-versatile>) he builds five things of a
//! semaphore each, and measures them twice: over the semaphore of the system and over a light one that rarely
//! asks the system. Three of the five are here: his recursive mutex and
//! his philosophers are not. fibra's own primitives stand for the light ones.
//!
//! | file | holds |
//! | --- | --- |
//! | `trials.rs` | the three tests, generic over the primitives and over what runs them |
//! | `kit.rs` | the operations of each primitive, and the runner of a test |
//! | `ours.rs` | fibra's primitives |
//! | `semaphores.rs` | the primitives over a semaphore, as he builds them: that of the system, or a mutex and a condition variable |

mod kit;
mod ours;
mod semaphores;
mod trials;

use std::io;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use fibra::sync;

use crate::sys;
use kit::{Tasks, Threads};
use semaphores::{Benaphore, Counted, Monitor, Phases};

/// Measures three primitives, four tasks or threads at each: fibra's among tasks and among threads,
/// those built over the system's semaphore, and those over one of a condition variable. Takes about 20
/// seconds.
#[derive(Parser)]
#[command(name = "preshing", version, max_term_width = 100)]
struct Plan {
    /// How often each locks the mutex; the default is that of the original, and the other tests follow
    #[arg(long, value_name = "N", default_value_t = 400_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rounds: u32,
}

/// One line of the table.
struct Trial {
    name: &'static str,
    /// His milliseconds with the light semaphore and with that of his system.
    his: (u32, u32),
    /// The part of the rounds for the mutex that each thread does.
    part: u32,
    /// The test for each kind of primitives; false where it went wrong.
    ways: [fn(&Tasks, u32) -> bool; 4],
}

/// The test among fibra's tasks and threads, over the system's semaphore, and over a condition variable.
macro_rules! trial {
    ($name:literal, $test:ident of $ours:ty, $theirs:ident, $his:expr, $part:literal) => {
        Trial {
            name: $name,
            his: $his,
            part: $part,
            ways: [
                trials::$test::<$ours, Tasks>,
                |_, rounds| trials::$test::<$ours, Threads>(&Threads, rounds),
                |_, rounds| trials::$test::<$theirs<sys::Semaphore>, Threads>(&Threads, rounds),
                |_, rounds| trials::$test::<$theirs<Monitor>, Threads>(&Threads, rounds),
            ],
        }
    };
}

/// The event does a tenth of his share, since each round is some sleeps, and the read-write lock a fifth,
/// since a lock that is handed over from processor to processor needs long.
const TRIALS: [Trial; 3] = [
    trial!("lightweight mutex", mutex of sync::Mutex<()>, Benaphore, (375, 5503), 1),
    trial!("auto-reset event", event of sync::AutoResetEvent, Counted, (593, 4665), 4),
    trial!("read-write lock", read_write of sync::RwLock<()>, Phases, (598, 7126), 2),
];

/// Measures and prints.
///
/// Returns the exit status: 0 when every test found what it protects intact; 1 otherwise.
pub fn main() -> ExitCode {
    match measure(&Plan::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("preshing: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(plan: &Plan) -> io::Result<()> {
    let runtime = Tasks::start()?;
    println!(
        "{:<20} {:>9} {:>9} {:>9} {:>9}   {:>9} {:>9} {:>9}   his ms, light / system",
        "ms", "tasks", "threads", "system's", "condition", "tasks /", "threads /", "tasks /"
    );
    println!(
        "{:<20} {:>9} {:>9} {:>9} {:>9}   {:>9} {:>9} {:>9}",
        "", "", "", "semaphore", "variable", "system's", "system's", "condition"
    );
    for Trial { name, his: (light, heavy), part, ways } in &TRIALS {
        let rounds = plan.rounds.div_ceil(*part);
        let mut times = [0.0; 4];
        for (time_of, way) in times.iter_mut().zip(ways) {
            *time_of = time(name, || way(&runtime, rounds))?;
        }
        let [tasks, threads, system, condition] = times;
        println!(
            "{name:<20} {tasks:>9.1} {threads:>9.1} {system:>9.1} {condition:>9.1}   {:>9.3} {:>9.3} {:>9.3}   \
             {light} / {heavy} = {:.3}",
            tasks / system,
            threads / system,
            tasks / condition,
            f64::from(*light) / f64::from(*heavy),
        );
    }
    Ok(())
}

/// The milliseconds that the test takes.
fn time(name: &str, test: impl FnOnce() -> bool) -> io::Result<f64> {
    let begin = Instant::now();
    match test() {
        true => Ok(begin.elapsed().as_secs_f64() * 1e3),
        false => Err(io::Error::other(format!("{name}: what it protects is damaged"))),
    }
}
