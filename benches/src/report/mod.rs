//! The results of a campaign, as a table for the terminal, a page for the browser and a file for machines.

pub(crate) mod chart;
mod figure;
mod html;
mod json;
mod ladder;
mod latency;
mod scenario;
pub(crate) mod table;
mod timeline;
pub mod units;

use crate::generator::new_histogram;
use crate::log::{self, Origin};
use crate::options::{Options, Outputs};
use crate::process::Machine;
use crate::run::Finished;
use crate::terminal::{self, complain};
use crate::wire::{Outcome, Progress, Protocol, Totals};
use hdrhistogram::Histogram;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{env, fs};

/// The percentiles of the table.
pub(crate) const PERCENTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// A generator that was busier than this may itself have been the limit.
const BUSY: f64 = 0.95;

/// With fewer requests on their way than these, neither side can be the limit: they wait for each other.
const CROWD: u32 = 16;

/// A server that left more than this share of the requests unanswered did not keep up; a few wait at any
/// moment.
const LATE: f64 = 0.01;

/// How many colours the page has for servers; then it begins again.
const HUES: usize = 5;

/// Where the figures come from.
pub(crate) enum Source {
    /// A campaign of our own.
    Run { options: Box<Options>, protocol: Protocol, machine: Machine },
    /// The logs of others.
    Logs(Vec<Origin>),
}

/// The results of a campaign.
pub struct Report {
    pub(crate) started: SystemTime,
    pub(crate) source: Source,
    /// The processors of the servers and of the generator, where they were pinned.
    pub(crate) places: (Option<usize>, Option<usize>),
    pub(crate) rows: Vec<Row>,
    pub(crate) cross_check: Option<CrossCheck>,
    pub(crate) interrupted: bool,
}

impl Report {
    /// Returns true if nothing went wrong with any server.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let second = self.cross_check.as_ref().map(|check| &check.row);
        self.rows.iter().chain(second).all(|row| row.errors.is_empty())
    }

    /// Describes the load in one line.
    pub(crate) fn load(&self) -> String {
        match &self.source {
            Source::Run { options, protocol, .. } => scenario::describe(options, *protocol),
            Source::Logs(origins) => {
                let mut loads: Vec<&str> = origins.iter().map(|origin| origin.load.as_str()).collect();
                loads.dedup();
                let logs = if origins.len() == 1 {
                    "one log"
                } else {
                    &format!("{} logs merged, each", origins.len())
                };
                format!("{logs} of {}", loads.join(" / or of "))
            }
        }
    }

    /// Describes the machine in one line.
    pub(crate) fn machine(&self) -> String {
        let machine = match &self.source {
            Source::Run { machine, .. } => machine.line(),
            Source::Logs(origins) => {
                let mut machines: Vec<&str> = origins.iter().map(|origin| origin.machine.as_str()).collect();
                machines.dedup();
                return machines.join(" / ");
            }
        };
        let places = match self.places {
            (Some(server), Some(generator)) => {
                format!("; server on core {server}, generator on core {generator}")
            }
            (None, Some(generator)) => format!("; generator on core {generator}"),
            _ => "; server and generator share the cores".into(),
        };
        format!("{machine}{places}")
    }

    /// Returns true if each server was loaded at several rates.
    pub(crate) fn is_ladder(&self) -> bool {
        let first = self.rows.first().map(|row| row.place);
        self.rows.iter().filter(|row| Some(row.place) == first).count() > 1
    }

    /// Returns true if every request had a connection of its own, so that both counts are equal.
    fn is_churn(&self) -> bool {
        matches!(&self.source, Source::Run { options, .. } if options.churn)
    }

    /// Returns the unit of the rates.
    pub(crate) fn unit(&self) -> &'static str {
        if self.is_churn() { "conn/s" } else { "req/s" }
    }

    /// A row for each server: the only one, or that of the highest rate with which it kept up, else of the
    /// lowest.
    pub(crate) fn faces(&self) -> Vec<&Row> {
        let mut faces: Vec<&Row> = Vec::new();
        for row in &self.rows {
            match faces.iter_mut().find(|face| face.place == row.place) {
                Some(face) if row.keeps_up() && (!face.keeps_up() || row.asked > face.asked) => *face = row,
                Some(_) => {}
                None => faces.push(row),
            }
        }
        faces
    }
}

/// One server under load.
pub struct Row {
    /// Which of the servers it is.
    pub(crate) place: usize,
    pub(crate) name: String,
    pub(crate) about: String,
    /// The load in a word without spaces. Rows with equal server and scenario can be merged.
    pub(crate) scenario: String,
    /// Requests per second that were asked for.
    pub(crate) asked: Option<f64>,
    pub(crate) totals: Totals,
    /// In nanoseconds.
    pub(crate) latencies: Histogram<u64>,
    pub(crate) timeline: Vec<Progress>,
    /// What went wrong.
    pub(crate) errors: Vec<String>,
    /// Notes for the reader of the figures.
    pub(crate) notes: Vec<String>,
}

impl Row {
    pub(crate) fn new(
        name: &str,
        about: &str,
        options: &Options,
        protocol: Protocol,
        asked: Option<f64>,
        finished: Finished,
        interrupted: bool,
    ) -> Self {
        let outcome = finished.outcome.unwrap_or_default();
        let mut errors = finished.errors;
        find_errors(&outcome, options, interrupted, &mut errors);
        let mut row = Self {
            place: 0,
            name: name.into(),
            about: about.into(),
            scenario: scenario::word(options, protocol, asked),
            asked,
            latencies: to_histogram(&outcome),
            totals: outcome.totals,
            timeline: finished.timeline,
            errors,
            notes: Vec::new(),
        };
        row.notes = row.find_notes(options, interrupted);
        row
    }

    /// The server, and the rate at which it was asked if it was.
    pub(crate) fn title(&self) -> String {
        match self.asked {
            Some(rate) => format!("{} at {}/s", self.name, units::rate(rate)),
            None => self.name.clone(),
        }
    }

    /// The colour of its server on the page.
    pub(crate) fn hue(&self) -> usize {
        self.place % HUES
    }

    /// True unless something went wrong or more of the requests than a few had to wait to the end.
    pub(crate) fn keeps_up(&self) -> bool {
        self.errors.is_empty()
            && self.totals.replies > 0
            && self.totals.unsent as f64 <= LATE * self.totals.replies as f64
    }

    /// Returns the number of requests answered per second.
    pub(crate) fn rate(&self) -> f64 {
        if self.totals.elapsed.is_zero() {
            0.0
        } else {
            self.totals.replies as f64 / self.totals.elapsed.as_secs_f64()
        }
    }

    /// The latency that this share of the requests did not exceed, in nanoseconds; `None` if there were none.
    pub(crate) fn latency(&self, share: f64) -> Option<u64> {
        (!self.latencies.is_empty())
            .then(|| self.latencies.value_at_quantile(share).min(self.latencies.max()))
    }

    /// Returns the processor time of the server for one request.
    pub(crate) fn cpu_per_request(&self) -> Option<u64> {
        let cpu = self.totals.server?.cpu.as_nanos() / u128::from(self.totals.replies.max(1));
        (self.totals.replies > 0).then(|| u64::try_from(cpu).unwrap_or(u64::MAX))
    }

    /// Returns the share of one processor that the generator used.
    pub(crate) fn generator_busy(&self) -> f64 {
        if self.totals.elapsed.is_zero() {
            0.0
        } else {
            self.totals.own_cpu.as_secs_f64() / self.totals.elapsed.as_secs_f64()
        }
    }

    /// Returns the share of one processor that the server used.
    pub(crate) fn server_busy(&self) -> Option<f64> {
        let cpu = self.totals.server?.cpu.as_secs_f64();
        (!self.totals.elapsed.is_zero()).then(|| cpu / self.totals.elapsed.as_secs_f64())
    }

    /// Summarizes a run for the progress.
    pub(crate) fn summary(finished: &Finished) -> String {
        let Some(outcome) = &finished.outcome else {
            return match finished.errors.is_empty() {
                true => "interrupted".into(),
                false => finished.errors.join("; "),
            };
        };
        let rate = outcome.totals.replies as f64 / outcome.totals.elapsed.as_secs_f64().max(1e-9);
        let p99 = to_histogram(outcome).value_at_quantile(0.99);
        let faults = match outcome.totals.faults.total() {
            0 => String::new(),
            count => format!(" · errors: {}", units::count(count)),
        };
        format!("{} req/s · p99 {}{faults}", units::rate(rate), units::nanos(p99))
    }

    fn find_notes(&self, options: &Options, interrupted: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let late = self.totals.unsent as f64 > LATE * self.totals.replies as f64;
        // A generator with little to do polls before it sleeps, and looks busy.
        let crowded = late || self.asked.is_none() && options.connections * options.pipeline >= CROWD;
        if interrupted && !self.totals.elapsed.is_zero() {
            notes.push(format!("interrupted: measured for {}", units::time(self.totals.elapsed)));
        }
        if late {
            let unsent = units::count(self.totals.unsent);
            notes.push(format!(
                "did not keep up with the rate: {unsent} requests were due and still waited at the end; they count with \
                 the latency they had reached"
            ));
        }
        if self.totals.unanswered > 0 {
            let (unanswered, patience) = (units::count(self.totals.unanswered), units::time(options.timeout));
            notes.push(format!(
                "no reply came to {unanswered} datagrams within {patience}; they count with that latency"
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
    // Under a low rate nothing may have been due.
    let is_paced = options.rate.is_some();
    if outcome.totals.faults.total() > 0 {
        errors.push(outcome.totals.faults.to_string());
    }
    if interrupted || !errors.is_empty() && outcome.totals.connected == 0 {
        return;
    }
    if let Some(why) = &outcome.ended_early {
        errors.push(format!("ended early: {why}"));
    }
    if outcome.totals.replies == 0 && !(is_paced && outcome.latencies.is_empty()) {
        errors.push("no reply came".into());
    }
    if outcome.totals.connected < options.connections as usize && outcome.totals.connected > 0 {
        errors
            .push(format!("only {} of {} connections stood", outcome.totals.connected, options.connections));
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

    /// Returns the footnote.
    pub(crate) fn sentence(&self) -> String {
        let latency = |share| self.row.latency(share).map_or_else(|| "none".into(), units::nanos);
        format!(
            "cross-check: a client of plain threads saw {} req/s of {}, p50 {}, p99 {} ({:.2} times the rate of the fibra client)",
            units::rate(self.row.rate()),
            self.row.name,
            latency(0.5),
            latency(0.99),
            self.ratio,
        )
    }
}

/// Checks before the measurement whether all files can be written. Complains about each that cannot.
pub(crate) fn can_publish(program: &str, outputs: &Outputs, log: Option<&Path>) -> bool {
    let page = page_of(program, outputs);
    let files = [("page", Some(&*page)), ("figures", outputs.json.as_deref()), ("log", log)];
    files.into_iter().all(|(what, path)| path.is_none_or(|path| told(program, what, path, open(path))))
}

fn open(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        // A reader of a pipe would take this for the end.
        Ok(known) if !known.is_file() && !known.is_dir() => Ok(()),
        _ => {
            make_folders(path)?;
            fs::OpenOptions::new().append(true).create(true).open(path).map(drop)
        }
    }
}

/// Returns where the page is written.
pub(crate) fn page_of(program: &str, outputs: &Outputs) -> PathBuf {
    outputs.html.clone().unwrap_or_else(|| {
        let target = PathBuf::from("target");
        let parent = if target.is_dir() { target } else { env::temp_dir() };
        parent.join(format!("fibra-{program}")).join("report.html")
    })
}

/// Writes the page and, if asked, the files; then prints the table, and where they are. False if something
/// could not be written.
pub(crate) fn publish(report: &Report, outputs: &Outputs, log: Option<&Path>) -> bool {
    let mut text = table::render(report);
    let page = page_of("load", outputs);
    let mut written = write("load", "page", &page, Ok(html::render(report)), &mut text);
    if let Some(file) = &outputs.json {
        written &= write("load", "figures", file, Ok(json::render(report)), &mut text);
    }
    if let Some(file) = log {
        written &= write("load", "log", file, log::render(report), &mut text);
    }
    written & terminal::print("load", &text)
}

/// Writes a file for `program` and adds to `places` where it is. False if it could not be written.
pub(crate) fn write(
    program: &str,
    what: &str,
    path: &Path,
    text: io::Result<String>,
    places: &mut String,
) -> bool {
    let outcome = text.and_then(|text| make_folders(path).and_then(|()| fs::write(path, text)));
    let written = told(program, what, path, outcome);
    if written {
        let shown = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let _ = writeln!(places, "{what}: {}", shown.display());
    }
    written
}

/// Complains about a file that could not be written, and returns `false` then.
fn told(program: &str, what: &str, path: &Path, outcome: io::Result<()>) -> bool {
    if let Err(error) = &outcome {
        complain(format_args!("{program}: the {what} could not be written to {}: {error}", path.display()));
    }
    outcome.is_ok()
}

fn make_folders(path: &Path) -> io::Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => fs::create_dir_all(folder),
        None => Ok(()),
    }
}
