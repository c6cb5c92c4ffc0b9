//! Reads logs and puts together what belongs together.

use super::{HEAD, Origin, ROW, Rest};
use crate::generator::new_histogram;
use crate::process::Machine;
use crate::report::{Report, Row, Source};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use std::{cmp, fs};

/// Of two runs that are put together, this share of the shorter must have been at the same time.
const OVERLAP: f64 = 0.8;

/// Makes one report of several logs.
pub(crate) fn merge(files: &[PathBuf]) -> io::Result<Report> {
    let (mut origins, mut rows) = (Vec::new(), Vec::new());
    for file in files {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
        let (origin, found) = read(file).map_err(named)?;
        origins.push(origin);
        found.into_iter().for_each(|row| add(row, &mut rows));
    }
    for number in 0..rows.len() {
        // The place among the servers, by the order in which they came.
        let first = rows.iter().position(|row: &Row| row.name == rows[number].name).unwrap_or(number);
        rows[number].place = if first == number { servers(&rows[..number]) } else { rows[first].place };
    }
    rows.sort_by(|a, b| a.place.cmp(&b.place).then(order(a.asked, b.asked)));
    let begun = rows.iter().map(|row| row.begun).min().unwrap_or_default();
    Ok(Report {
        started: UNIX_EPOCH + begun,
        interrupted: origins.iter().any(|origin| origin.interrupted),
        source: Source::Logs(origins),
        machine: Machine::describe(),
        places: (None, None),
        rows,
        cross_check: None,
    })
}

fn servers(rows: &[Row]) -> usize {
    rows.iter().map(|row| row.place + 1).max().unwrap_or(0)
}

fn order(one: Option<f64>, other: Option<f64>) -> cmp::Ordering {
    one.unwrap_or(0.0).total_cmp(&other.unwrap_or(0.0))
}

/// The rows of one log, those with the same tag put together already: its intervals follow each other.
fn read(file: &Path) -> io::Result<(Origin, Vec<Row>)> {
    let text = fs::read_to_string(file)?;
    let mut origin = Origin { load: "a log of somebody else's".into(), ..Origin::default() };
    let mut rests = VecDeque::new();
    for comment in text.lines().filter_map(|line| line.strip_prefix('#')) {
        if let Some(json) = comment.strip_prefix(HEAD) {
            origin = serde_json::from_str(json)?;
        } else if let Some(json) = comment.strip_prefix(ROW) {
            rests.push_back(serde_json::from_str::<Rest>(json)?);
        }
    }
    origin.file = file.display().to_string();
    let (mut rows, mut base) = (Vec::new(), Duration::ZERO);
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        let broken = |_| io::Error::new(ErrorKind::InvalidData, "a line is none of an interval log");
        match entry.map_err(broken)? {
            LogEntry::StartTime(_) => {}
            LogEntry::BaseTime(time) => base = time,
            LogEntry::Interval(interval) => {
                let tag = interval.tag().map_or("", |tag| tag.as_str());
                let rest = rests.pop_front_if(|rest| rest.tag == tag);
                let row = to_row(tag, &interval, base, rest)?;
                append(row, &mut rows);
            }
        }
    }
    match rows.is_empty() {
        true => Err(io::Error::new(ErrorKind::InvalidData, "there is no interval in it")),
        false => Ok((origin, rows)),
    }
}

fn to_row(
    tag: &str,
    interval: &IntervalLogHistogram<'_>,
    base: Duration,
    rest: Option<Rest>,
) -> io::Result<Row> {
    let latencies = decode(interval.encoded_histogram())?;
    let rest = rest.unwrap_or_else(|| Rest {
        replies: latencies.len(),
        elapsed: interval.duration(),
        ..Rest::default()
    });
    let (name, scenario) = tag.split_once('/').unwrap_or((tag, ""));
    Ok(Row {
        place: 0,
        name: if name.is_empty() { "untagged".into() } else { name.into() },
        about: rest.about,
        scenario: scenario.into(),
        asked: rest.asked,
        begun: base + interval.start_timestamp(),
        connected: rest.connected,
        replies: rest.replies,
        elapsed: rest.elapsed,
        latencies,
        server: None,
        own_cpu: rest.own_cpu,
        unsent: rest.unsent,
        unanswered: rest.unanswered,
        faults: rest.faults,
        timeline: Vec::new(),
        errors: rest.errors,
        notes: rest.notes,
    })
}

fn decode(letters: &str) -> io::Result<Histogram<u64>> {
    let invalid =
        |why: String| io::Error::new(ErrorKind::InvalidData, format!("a histogram is broken: {why}"));
    let bytes = BASE64_STANDARD.decode(letters).map_err(|error| invalid(error.to_string()))?;
    let read: Histogram<u64> =
        Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| invalid(error.to_string()))?;
    // With the bounds of ours, whatever its own are.
    let mut histogram = new_histogram();
    for value in read.iter_recorded() {
        histogram.saturating_record_n(value.value_iterated_to(), value.count_at_value());
    }
    Ok(histogram)
}

/// Adds a row of another generator: the rates add up.
fn add(row: Row, rows: &mut Vec<Row>) {
    let Some(sum) = rows.iter_mut().find(|sum| sum.name == row.name && sum.scenario == row.scenario) else {
        return rows.push(row);
    };
    if overlap(sum, &row) < OVERLAP * sum.elapsed.min(row.elapsed).as_secs_f64() {
        add_note(sum, "the logs are not of the same time, so that the rates do not add up".into());
    }
    let end = (sum.begun + sum.elapsed).max(row.begun + row.elapsed);
    sum.begun = sum.begun.min(row.begun);
    sum.asked = sum.asked.zip(row.asked).map(|(one, other)| one + other);
    // Of runs side by side the rates are summed; this is the time in which the sum of the replies has that rate.
    let rate = sum.rate() + row.rate();
    absorb(sum, row);
    sum.elapsed = match rate > 0.0 {
        true => Duration::from_secs_f64(sum.replies as f64 / rate),
        false => end - sum.begun,
    };
}

/// Adds a row of the same generator, which came after the others.
fn append(row: Row, rows: &mut Vec<Row>) {
    let Some(sum) = rows.iter_mut().find(|sum| sum.name == row.name && sum.scenario == row.scenario) else {
        return rows.push(row);
    };
    sum.elapsed += row.elapsed;
    absorb(sum, row);
}

/// Adds all but the times.
fn absorb(sum: &mut Row, row: Row) {
    sum.connected += row.connected;
    sum.replies += row.replies;
    // Both histograms have the bounds of ours.
    sum.latencies += row.latencies;
    sum.own_cpu += row.own_cpu;
    sum.unsent += row.unsent;
    sum.unanswered += row.unanswered;
    sum.faults.add(&row.faults);
    sum.errors.extend(row.errors);
    row.notes.into_iter().for_each(|note| add_note(sum, note));
}

/// Several generators may have the same to say.
fn add_note(row: &mut Row, note: String) {
    if !row.notes.contains(&note) {
        row.notes.push(note);
    }
}

/// For how many seconds both were measured.
fn overlap(one: &Row, other: &Row) -> f64 {
    let begin = one.begun.max(other.begun);
    let end = (one.begun + one.elapsed).min(other.begun + other.elapsed);
    end.saturating_sub(begin).as_secs_f64()
}
