//! Jeff Preshing's table of primitives, with fibra's in it: `cargo run --release -p fibra-bench --bin preshing`.
//!
//! In "Semaphores are Surprisingly Versatile" (2015, <https://preshing.com/20150316/semaphores-are-surprisingly-versatile>)
//! he builds five things of a semaphore each, and measures them twice: over the semaphore of the system and over a light
//! one that rarely asks the system. Here fibra's own primitives stand for the light ones.
//!
//! | file | holds |
//! | --- | --- |
//! | `trials.rs` | the five tests, generic over the primitives and over what runs them |
//! | `kit.rs` | what a set of primitives has to offer, and who may run a test |
//! | `ours.rs` | fibra's primitives |
//! | `semaphores.rs` | the same over a semaphore, as he builds them, and the system's |
//! | `conditions.rs` | the same over a mutex and a condition variable |
//! | `office.rs` | the box office of the dining philosophers, without a lock |

mod conditions;
mod kit;
mod office;
mod ours;
mod semaphores;
mod trials;

use std::io;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use conditions::Conditions;
use kit::{Tasks, Threads};
use ours::Ours;
use semaphores::Semaphores;

/// Measures five primitives, four or five tasks or threads at each: fibra's among tasks and among threads, those built over
/// the system's semaphore, and those built over a condition variable. Takes about 20 seconds.
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
    /// How many rounds each thread does, of those for the mutex.
    rounds: fn(u32) -> u32,
    ways: Ways,
}

/// The same test for each kind of primitives; false where it went wrong.
struct Ways {
    tasks: fn(&Tasks, u32) -> bool,
    threads: fn(&Threads, u32) -> bool,
    semaphores: fn(&Threads, u32) -> bool,
    conditions: fn(&Threads, u32) -> bool,
}

const TRIALS: [Trial; 5] = [
    Trial {
        name: "lightweight mutex",
        his: (375, 5503),
        rounds: |rounds| rounds,
        ways: Ways {
            tasks: trials::mutex::<Ours, Tasks>,
            threads: trials::mutex::<Ours, Threads>,
            semaphores: trials::mutex::<Semaphores, Threads>,
            conditions: trials::mutex::<Conditions, Threads>,
        },
    },
    Trial {
        name: "recursive mutex",
        his: (393, 404),
        rounds: |rounds| rounds.div_ceil(4),
        ways: Ways {
            tasks: trials::recursive::<Ours, Tasks>,
            threads: trials::recursive::<Ours, Threads>,
            semaphores: trials::recursive::<Semaphores, Threads>,
            conditions: trials::recursive::<Conditions, Threads>,
        },
    },
    Trial {
        name: "auto-reset event",
        his: (593, 4665),
        // A tenth of his share, since each round is some sleeps.
        rounds: |rounds| rounds.div_ceil(4),
        ways: Ways {
            tasks: trials::event::<Ours, Tasks>,
            threads: trials::event::<Ours, Threads>,
            semaphores: trials::event::<Semaphores, Threads>,
            conditions: trials::event::<Conditions, Threads>,
        },
    },
    Trial {
        name: "read-write lock",
        his: (598, 7126),
        // A fifth of his share, since those that hand the lock over from processor to processor need long.
        rounds: |rounds| rounds.div_ceil(2),
        ways: Ways {
            tasks: trials::read_write::<Ours, Tasks>,
            threads: trials::read_write::<Ours, Threads>,
            semaphores: trials::read_write::<Semaphores, Threads>,
            conditions: trials::read_write::<Conditions, Threads>,
        },
    },
    Trial {
        name: "dining philosophers",
        his: (309, 580),
        rounds: |rounds| rounds.div_ceil(40),
        ways: Ways {
            tasks: trials::philosophers::<Ours, Tasks>,
            threads: trials::philosophers::<Ours, Threads>,
            semaphores: trials::philosophers::<Semaphores, Threads>,
            conditions: trials::philosophers::<Conditions, Threads>,
        },
    },
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
    let tasks = Tasks::start()?;
    println!(
        "{:<20} {:>9} {:>9} {:>9} {:>9}   {:>9} {:>9} {:>9}   his ms, light / system",
        "ms", "tasks", "threads", "system's", "condition", "tasks /", "threads /", "tasks /"
    );
    println!(
        "{:<20} {:>9} {:>9} {:>9} {:>9}   {:>9} {:>9} {:>9}",
        "", "", "", "semaphore", "variable", "system's", "system's", "condition"
    );
    for trial in &TRIALS {
        let rounds = (trial.rounds)(plan.rounds);
        let ways = &trial.ways;
        let among_tasks = time(trial.name, || (ways.tasks)(&tasks, rounds))?;
        let among_threads = time(trial.name, || (ways.threads)(&Threads, rounds))?;
        let system = time(trial.name, || (ways.semaphores)(&Threads, rounds))?;
        let condition = time(trial.name, || (ways.conditions)(&Threads, rounds))?;
        let (light, heavy) = trial.his;
        println!(
            "{:<20} {among_tasks:>9.1} {among_threads:>9.1} {system:>9.1} {condition:>9.1}   {:>9.3} {:>9.3} {:>9.3}   \
             {light} / {heavy} = {:.3}",
            trial.name,
            among_tasks / system,
            among_threads / system,
            among_tasks / condition,
            f64::from(light) / f64::from(heavy),
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
