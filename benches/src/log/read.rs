//! Reads logs and puts together what belongs together.

use super::{HEAD, Origin, ROW, Rest};
use crate::generator::new_histogram;
use crate::process::Usage;
use crate::report::{Report, Row, Source};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{cmp, fs};

/// Of two runs that are put together, this share of the shorter must have been at the same time.
const OVERLAP: f64 = 0.8;

/// Stamps that are farther before the start of their log than this count from there, as in logs of other
/// tools.
const ABSOLUTE: Duration = Duration::from_secs(365 * 24 * 3600);

/// The year 10000. What says that it was later is no log, and sums of times before that do not overflow.
const FAR: Duration = Duration::from_secs(253_402_300_800);

/// Makes one report of several logs.
pub(crate) fn merge(files: &[PathBuf]) -> io::Result<Report> {
    let (mut origins, mut rows, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
        let (origin, found) = read(file).map_err(named)?;
        origins.push(origin);
        parts.extend(found.iter().map(Part::of));
        found.into_iter().for_each(|row| add(row, &mut rows));
    }
    rows.iter_mut().for_each(|row| row.server = usage(row, &parts));
    for number in 0..rows.len() {
        // The place among the servers, by the order in which they came.
        let first = rows.iter().position(|row: &Row| row.name == rows[number].name).unwrap_or(number);
        rows[number].place = if first == number { servers(&rows[..number]) } else { rows[first].place };
    }
    rows.sort_by(|a, b| a.place.cmp(&b.place).then(order(a.asked, b.asked)));
    let begun = rows.iter().filter(|row| is_measured(row)).map(|row| row.begun).min();
    Ok(Report {
        started: begun.map_or_else(SystemTime::now, |begun| UNIX_EPOCH + begun),
        // The merging itself was not interrupted; the rows say which runs were.
        interrupted: false,
        source: Source::Logs(origins),
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
    let (mut rows, mut start, mut base) = (Vec::new(), Duration::ZERO, None);
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        match entry.map_err(|_| invalid("a line is none of an interval log"))? {
            LogEntry::StartTime(time) => start = time,
            LogEntry::BaseTime(time) => base = Some(time),
            LogEntry::Interval(interval) => {
                let tag = interval.tag().map_or("", |tag| tag.as_str());
                let rest = rests.pop_front_if(|rest| rest.tag == tag);
                let stamp = interval.start_timestamp();
                let is_relative = stamp.saturating_add(ABSOLUTE) < start;
                let base = base.unwrap_or(if is_relative { start } else { Duration::ZERO });
                append(to_row(tag, &interval, base, rest)?, &mut rows);
            }
        }
    }
    match rows.is_empty() {
        true => Err(invalid("there is no interval in it")),
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
    let begun = base.checked_add(interval.start_timestamp());
    let begun = begun.filter(|begun| begun.checked_add(rest.elapsed).is_some_and(|end| end < FAR));
    let begun = begun.ok_or_else(|| invalid("a time is beyond all calendars"))?;
    let (name, scenario) = tag.split_once('/').unwrap_or((tag, ""));
    Ok(Row {
        place: 0,
        name: if name.is_empty() { "untagged".into() } else { name.into() },
        about: rest.about,
        scenario: scenario.into(),
        asked: rest.asked,
        begun,
        connected: rest.connected,
        replies: rest.replies,
        elapsed: rest.elapsed,
        latencies,
        server: rest.server,
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
    let broken = |why: String| invalid(&format!("a histogram is broken: {why}"));
    let bytes = BASE64_STANDARD.decode(letters).map_err(|error| broken(error.to_string()))?;
    let read: Histogram<u64> =
        Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| broken(error.to_string()))?;
    // With the bounds of ours, whatever its own are.
    let mut histogram = new_histogram();
    for value in read.iter_recorded() {
        histogram.saturating_record_n(value.value_iterated_to(), value.count_at_value());
    }
    Ok(histogram)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// Whether the row came to its measured time.
fn is_measured(row: &Row) -> bool {
    !row.elapsed.is_zero()
}

/// Adds a row of another generator: the rates add up.
fn add(row: Row, rows: &mut Vec<Row>) {
    let Some(sum) = rows.iter_mut().find(|sum| sum.name == row.name && sum.scenario == row.scenario) else {
        return rows.push(row);
    };
    sum.asked = sum.asked.zip(row.asked).map(|(one, other)| one + other);
    match (is_measured(sum), is_measured(&row)) {
        (true, true) => add_times(sum, &row),
        (false, _) => (sum.begun, sum.elapsed) = (row.begun, row.elapsed),
        (true, false) => {}
    }
    absorb(sum, row);
}

fn add_times(sum: &mut Row, row: &Row) {
    if overlap(span(sum), span(row)) < OVERLAP * sum.elapsed.min(row.elapsed).as_secs_f64() {
        add_note(sum, "the logs are not of the same time, so that the rates do not add up".into());
    }
    let end = (sum.begun + sum.elapsed).max(row.begun + row.elapsed);
    let (rate, replies) = (sum.rate() + row.rate(), sum.replies.saturating_add(row.replies));
    sum.begun = sum.begun.min(row.begun);
    // Of runs side by side the rates are summed; this is the time in which the sum of the replies has that
    // rate.
    sum.elapsed = match rate > 0.0 {
        true => Duration::from_secs_f64(replies as f64 / rate),
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

/// Adds all but the times. What a log says may be anything, hence the saturation.
fn absorb(sum: &mut Row, row: Row) {
    sum.connected = sum.connected.saturating_add(row.connected);
    sum.replies = sum.replies.saturating_add(row.replies);
    // Both histograms have the bounds of ours.
    sum.latencies += row.latencies;
    sum.own_cpu = sum.own_cpu.saturating_add(row.own_cpu);
    sum.server = None;
    sum.unsent = sum.unsent.saturating_add(row.unsent);
    sum.unanswered = sum.unanswered.saturating_add(row.unanswered);
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

/// When it was measured, and for how long.
type Span = (Duration, Duration);

fn span(row: &Row) -> Span {
    (row.begun, row.elapsed)
}

/// For how many seconds both were measured.
fn overlap(one: Span, other: Span) -> f64 {
    let end = (one.0 + one.1).min(other.0 + other.1);
    end.saturating_sub(one.0.max(other.0)).as_secs_f64()
}

/// What one log has of a row.
struct Part {
    name: String,
    scenario: String,
    span: Span,
    replies: u64,
    server: Option<Usage>,
}

impl Part {
    fn of(row: &Row) -> Part {
        let (name, scenario) = (row.name.clone(), row.scenario.clone());
        Part { name, scenario, span: span(row), replies: row.replies, server: row.server }
    }

    /// How many of its replies came meanwhile, if they came evenly.
    fn replies_during(&self, span: Span) -> f64 {
        match self.span.1.is_zero() {
            true => 0.0,
            false => self.replies as f64 * overlap(self.span, span) / self.span.1.as_secs_f64(),
        }
    }
}

/// What the server has used, if just one of the logs says so: that of the generator that started it. It did
/// so for the replies that all generators had in that one's interval, and is told for as many as the row has.
/// Of several that say so each had its own server.
fn usage(row: &Row, parts: &[Part]) -> Option<Usage> {
    let parts = || parts.iter().filter(|part| part.name == row.name && part.scenario == row.scenario);
    let mut known = parts().filter_map(|part| Some((part.span, part.server?)));
    let ((span, usage), None) = (known.next()?, known.next()) else { return None };
    let replies: f64 = parts().map(|part| part.replies_during(span)).sum();
    let cpu = usage.cpu.as_secs_f64() * row.replies as f64 / replies;
    Some(Usage { cpu: Duration::try_from_secs_f64(cpu).ok()?, ..usage })
}
