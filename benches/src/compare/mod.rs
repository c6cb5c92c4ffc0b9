//! The comparison with rivals: `cargo run --release -p fibra-bench --features rivals --bin compare`.
//!
//! | module | is |
//! | --- | --- |
//! | `options` | the command line |
//! | `question`, `entrant`, `targets` | the questions, the libraries that are asked, and fibra's targets |
//! | `worlds` | where tasks run: fibra, may, threads; tokio, smol |
//! | `blocking`, `awaiting` | the two kinds of tasks, and the libraries with their primitives |
//! | `asked` | the questions about both, one generic function each |
//! | `tasks`, `structured`, `primitives`, `timers`, `balance`, `memory`, `network` | the questions, by subject |
//! | `driver` | asks one question of all entrants, in rounds |
//! | `half` | the processes of that |
//! | `figures` | medians, ratios and targets of the samples |
//! | `table`, `page` with its `dots`, `record` | a table, a page, a file |
#![expect(unsafe_code, reason = "some libraries let tasks be spawned by a promise only")]
#![expect(
    clippy::duplicate_mod,
    reason = "the questions are compiled twice, for tasks that block and for tasks that await"
)]

mod awaiting;
mod balance;
mod blocking;
mod dots;
mod driver;
mod entrant;
mod figures;
mod half;
mod memory;
mod network;
mod options;
mod page;
mod primitives;
mod question;
mod record;
mod structured;
mod table;
mod targets;
mod tasks;
#[cfg(test)]
mod tests;
mod timers;
mod worlds;

use std::io;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Parser;

pub use entrant::{Contest, Contestant, Started};
use figures::{OneWorker, Row};
use half::Half;
use options::Options;
pub use question::{Answer, Measure};

use crate::generator;
use crate::interrupt::{self, Interrupt};
use crate::process::Machine;
use crate::report;
use crate::role::Role;
use crate::servers::Server;
use crate::terminal::{self, complain};

/// All that was found.
struct Findings {
    started: SystemTime,
    machine: Machine,
    rounds: u32,
    sample: std::time::Duration,
    rows: Vec<Row>,
    faults: Vec<String>,
    interrupted: bool,
    /// Whether all tables were.
    printed: bool,
}

/// Every question with so many workers, and its entrants.
#[must_use]
pub fn contests(workers: usize) -> Vec<Contest> {
    let mut contests = Contest::all(&tasks::ENTRANTS, workers);
    contests.extend(Contest::all(&structured::ENTRANTS, workers));
    contests.extend(Contest::all(&primitives::ENTRANTS, workers));
    contests.extend(Contest::all(&timers::ENTRANTS, workers));
    contests.extend(Contest::all(&balance::ENTRANTS, workers));
    contests.extend(Contest::all(&memory::ENTRANTS, workers));
    contests.extend(Contest::all(&network::ENTRANTS, workers));
    contests
}

/// Runs the role of this process: for a user it prints and writes, else it measures, serves or loads.
///
/// `servers` are those of fibra and of the event loop written by hand.
///
/// Returns the exit status: 0; 1 if an entrant died or hung or something could not be written; 2 for a wrong
/// command line; 130 after Ctrl-C.
pub fn main(servers: &[Server]) -> ExitCode {
    match Role::assume() {
        Some(Role::Comparer) => driver::main(),
        Some(Role::Generator) => generator::main(),
        Some(Role::Server(name)) => network::serve(&name, servers),
        Some(Role::Command(_)) => ExitCode::FAILURE,
        None => as_user(&Options::parse()).unwrap_or_else(|error| {
            complain(format_args!("compare: {error}"));
            ExitCode::FAILURE
        }),
    }
}

fn as_user(options: &Options) -> io::Result<ExitCode> {
    let halves: Vec<Vec<Contest>> = options.workers.iter().map(|&workers| wanted(options, workers)).collect();
    if halves.iter().all(Vec::is_empty) {
        return Err(io::Error::other("there is no such question; `--list` prints all"));
    }
    if options.list {
        let lines: String = halves.iter().flatten().map(list).collect();
        return Ok(ExitCode::from(u8::from(!terminal::print("compare", &lines))));
    }
    if !report::can_publish("compare", &options.outputs, None) {
        return Ok(ExitCode::FAILURE);
    }
    let findings = compare(options, &halves)?;
    let (page, mut places) = (report::page_of("compare", &options.outputs), String::new());
    let mut is_well = report::write("compare", "page", &page, Ok(page::render(&findings)), &mut places);
    if let Some(file) = &options.outputs.json {
        is_well &= report::write("compare", "figures", file, Ok(record::render(&findings)), &mut places);
    }
    is_well &= findings.printed & terminal::print("compare", &places);
    findings.faults.iter().for_each(|fault| complain(format_args!("compare: {fault}")));
    Ok(match (findings.interrupted, is_well && findings.faults.is_empty()) {
        (true, _) => ExitCode::from(interrupt::STATUS),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

fn wanted(options: &Options, workers: u16) -> Vec<Contest> {
    let mut contests = contests(workers.into());
    for contest in &mut contests {
        contest.entrants.retain(|entrant| options.wants_entrant(entrant.name));
    }
    contests.retain(|contest| options.wants_question(&contest.title()) && !contest.entrants.is_empty());
    contests
}

fn list(contest: &Contest) -> String {
    let s = if contest.workers == 1 { "" } else { "s" };
    let names: Vec<_> = contest.entrants.iter().map(|entrant| entrant.name).collect();
    format!("{} [{} worker{s}]: {}\n", contest.title(), contest.workers, names.join(", "))
}

/// Measures all halves, and prints the table of each subject as soon as it is complete.
fn compare(options: &Options, halves: &[Vec<Contest>]) -> io::Result<Findings> {
    let interrupt = Interrupt::listen()?;
    let machine = Machine::describe();
    let head = format!("{}\n{}\n\n", machine.line(), versions().join(", "));
    let mut findings = Findings {
        printed: terminal::print("compare", &head),
        started: SystemTime::now(),
        machine,
        rounds: options.rounds,
        sample: options.sample(),
        rows: Vec::new(),
        faults: Vec::new(),
        interrupted: false,
    };
    let mut one_worker = OneWorker::default();
    for contests in halves {
        let mut half = Half::new(contests, options, &interrupt);
        half.measure(|found| {
            let of = |found: &half::Found| figures::rows(&contests[found.contest], found, &mut one_worker);
            let rows: Vec<Row> = found.iter().flat_map(of).collect();
            findings.printed &= terminal::print("compare", &format!("{}\n", table::render(&rows)));
            findings.rows.extend(rows);
        })?;
        findings.faults.extend(half.faults);
    }
    findings.interrupted = interrupt.is_set();
    Ok(findings)
}

/// Describes the compiler, this repository, and the rivals.
fn versions() -> Vec<String> {
    let mut versions = vec![env!("FIBRA_RUSTC").to_owned()];
    versions.extend(commit().map(|commit| format!("fibra {commit}")));
    versions.extend(env!("FIBRA_RIVALS").split(',').map(str::to_owned));
    versions
}

/// The commit of this repository, where there is one.
fn commit() -> Option<String> {
    let git = ["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty"];
    let output = std::process::Command::new("git").args(git).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
