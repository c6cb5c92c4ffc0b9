//! What was found, and its three faces: a table for the terminal, a page for the browser, a file for machines.

mod html;
mod json;
mod svg;
mod table;
pub mod units;

use crate::generator::new_histogram;
use crate::options::Options;
use crate::process::{Machine, Usage};
use crate::run::Finished;
use crate::wire::{Faults, Outcome, Progress};
use hdrhistogram::Histogram;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, fs};

/// The percentiles of the table.
pub(crate) const PERCENTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// A generator that was busier than this may itself have been the limit.
const BUSY: f64 = 0.95;

/// With fewer requests on their way than these, neither side can be the limit: they wait for each other.
const CROWD: u32 = 16;

/// A server that left more than this share of the requests unasked did not keep up; a few wait at any moment.
const LATE: f64 = 0.01;

/// All that a campaign found.
pub struct Report {
    pub(crate) started: SystemTime,
    pub(crate) options: Options,
    pub(crate) machine: Machine,
    /// The processors of the servers and of the generator, where they were pinned.
    pub(crate) places: (Option<usize>, Option<usize>),
    pub(crate) rows: Vec<Row>,
    pub(crate) cross_check: Option<CrossCheck>,
    pub(crate) interrupted: bool,
}

impl Report {
    /// True if nothing went wrong with any server.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let second = self.cross_check.as_ref().map(|check| &check.row);
        self.rows.iter().chain(second).all(|row| row.errors.is_empty())
    }

    /// The load in one line.
    pub(crate) fn load(&self) -> String {
        let Options { connections, size, pipeline, rate, duration, warmup, .. } = &self.options;
        let loop_kind = match rate {
            Some(rate) => {
                format!("{} requests per second, each sent when due", units::count(rate.round() as u64))
            }
            None if *pipeline == 1 => "each asks again as soon as it is answered".into(),
            None => format!("{pipeline} requests on their way on each"),
        };
        format!(
            "{} connections, {} per request, {loop_kind}; {} measured after {} of warm-up",
            units::count(u64::from(*connections)),
            units::bytes(u64::from(*size)),
            units::time(*duration),
            units::time(*warmup),
        )
    }

    /// The machine in one line.
    pub(crate) fn machine(&self) -> String {
        let Machine { processor, cores, memory, kernel } = &self.machine;
        let places = match self.places {
            (Some(server), Some(generator)) => {
                format!("; server on core {server}, generator on core {generator}")
            }
            (None, Some(generator)) => format!("; generator on core {generator}"),
            _ => "; server and generator share the cores".into(),
        };
        format!("{processor}, {cores} cores, {}, {kernel}{places}", units::bytes(*memory))
    }
}

/// One server under load.
pub struct Row {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) connected: usize,
    pub(crate) replies: u64,
    pub(crate) elapsed: Duration,
    /// In nanoseconds.
    pub(crate) latencies: Histogram<u64>,
    pub(crate) server: Option<Usage>,
    pub(crate) own_cpu: Duration,
    pub(crate) unsent: u64,
    pub(crate) faults: Faults,
    pub(crate) timeline: Vec<Progress>,
    /// What went wrong.
    pub(crate) errors: Vec<String>,
    /// What should be known to read the figures.
    pub(crate) notes: Vec<String>,
}

impl Row {
    pub(crate) fn new(
        name: &str,
        about: &str,
        options: &Options,
        finished: Finished,
        interrupted: bool,
    ) -> Self {
        let outcome = finished.outcome.unwrap_or_default();
        let mut errors = finished.errors;
        find_errors(&outcome, options, interrupted, &mut errors);
        let mut row = Self {
            name: name.into(),
            about: about.into(),
            connected: outcome.connected,
            replies: outcome.replies,
            elapsed: outcome.elapsed,
            latencies: to_histogram(&outcome),
            server: outcome.server,
            own_cpu: outcome.own_cpu,
            unsent: outcome.unsent,
            faults: outcome.faults,
            timeline: finished.timeline,
            errors,
            notes: Vec::new(),
        };
        row.notes = row.find_notes(options, interrupted);
        row
    }

    /// Requests answered per second.
    pub(crate) fn rate(&self) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { self.replies as f64 / self.elapsed.as_secs_f64() }
    }

    /// The latency that this share of the requests did not exceed, in nanoseconds; `None` if there were none.
    pub(crate) fn latency(&self, share: f64) -> Option<u64> {
        (!self.latencies.is_empty())
            .then(|| self.latencies.value_at_quantile(share).min(self.latencies.max()))
    }

    /// The longest latency.
    pub(crate) fn longest(&self) -> Option<u64> {
        self.latency(1.0)
    }

    /// Processor time of the server for one request.
    pub(crate) fn cpu_per_request(&self) -> Option<u64> {
        let cpu = self.server?.cpu.as_nanos() / u128::from(self.replies.max(1));
        (self.replies > 0).then(|| u64::try_from(cpu).unwrap_or(u64::MAX))
    }

    /// The share of one processor that the generator used.
    pub(crate) fn generator_busy(&self) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { self.own_cpu.as_secs_f64() / self.elapsed.as_secs_f64() }
    }

    /// The share of one processor that the server used.
    pub(crate) fn server_busy(&self) -> Option<f64> {
        let cpu = self.server?.cpu.as_secs_f64();
        (!self.elapsed.is_zero()).then(|| cpu / self.elapsed.as_secs_f64())
    }

    /// A run's last word in the progress.
    pub(crate) fn summary(finished: &Finished) -> String {
        let Some(outcome) = &finished.outcome else {
            return finished.errors.join("; ");
        };
        let rate = outcome.replies as f64 / outcome.elapsed.as_secs_f64().max(1e-9);
        let p99 = to_histogram(outcome).value_at_quantile(0.99);
        let faults = match outcome.faults.total() {
            0 => String::new(),
            count => format!(" · errors: {}", units::count(count)),
        };
        format!("{} req/s · p99 {}{faults}", units::count(rate.round() as u64), units::nanos(p99))
    }

    fn find_notes(&self, options: &Options, interrupted: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let late = self.unsent as f64 > LATE * self.replies as f64;
        // A generator with little to do polls before it sleeps, and looks busy.
        let crowded = late || options.rate.is_none() && options.connections * options.pipeline >= CROWD;
        if interrupted && !self.elapsed.is_zero() {
            notes.push(format!("interrupted: measured for {}", units::time(self.elapsed)));
        }
        if late {
            let unsent = units::count(self.unsent);
            notes.push(format!(
                "did not keep up with the rate: {unsent} requests were due and still waited at the end; they count with \
                 the latency they had reached"
            ));
        }
        if self.generator_busy() > BUSY && crowded && self.server_busy().is_none_or(|busy| busy < BUSY) {
            let busy = units::percent(self.generator_busy());
            notes.push(format!(
                "the generator's core was {busy} busy: it, and not the server, may have been the limit"
            ));
        }
        notes
    }
}

fn find_errors(outcome: &Outcome, options: &Options, interrupted: bool, errors: &mut Vec<String>) {
    if outcome.faults.total() > 0 {
        errors.push(outcome.faults.to_string());
    }
    if interrupted || !errors.is_empty() && outcome.connected == 0 {
        return;
    }
    if let Some(why) = &outcome.ended_early {
        errors.push(format!("ended early: {why}"));
    }
    if outcome.replies == 0 {
        errors.push("no reply came".into());
    }
    if outcome.connected < options.connections as usize && outcome.connected > 0 {
        errors.push(format!("only {} of {} connections stood", outcome.connected, options.connections));
    }
}

fn to_histogram(outcome: &Outcome) -> Histogram<u64> {
    let mut histogram = new_histogram();
    for &(value, count) in &outcome.latencies {
        histogram.saturating_record_n(value, count);
    }
    histogram
}

/// A row seen again by the plain client.
pub struct CrossCheck {
    pub(crate) row: Row,
    /// The plain client's rate over that of the fibra client.
    pub(crate) ratio: f64,
}

impl CrossCheck {
    pub(crate) fn new(first: &Row, second: Row) -> Self {
        let ratio = if first.rate() > 0.0 { second.rate() / first.rate() } else { 0.0 };
        Self { row: second, ratio }
    }

    /// The footnote.
    pub(crate) fn sentence(&self) -> String {
        let latency = |share| self.row.latency(share).map_or_else(|| "none".into(), units::nanos);
        format!(
            "cross-check: a plain epoll client saw {} req/s of {}, p50 {}, p99 {} ({:.2} times the rate of the fibra client)",
            units::count(self.row.rate().round() as u64),
            self.row.name,
            latency(0.5),
            latency(0.99),
            self.ratio,
        )
    }
}

/// Prints the table, writes the page and, if asked, the file; says where. False if something could not be written.
pub(crate) fn publish(report: &Report, options: &Options) -> bool {
    print!("{}", table::render(report));
    let page = options.html.clone().unwrap_or_else(default_page);
    let mut written = write("page", &page, &html::render(report));
    if let Some(file) = &options.json {
        written &= write("figures", file, &json::render(report));
    }
    written
}

fn write(what: &str, path: &Path, text: &str) -> bool {
    match write_with_folders(path, text) {
        Ok(()) => {
            let shown = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            println!("{what}: {}", shown.display());
            true
        }
        Err(error) => {
            eprintln!("load: the {what} could not be written to {}: {error}", path.display());
            false
        }
    }
}

fn write_with_folders(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

fn default_page() -> PathBuf {
    let target = PathBuf::from("target");
    let folder = if target.is_dir() { target } else { env::temp_dir() };
    folder.join("fibra-load").join("report.html")
}
