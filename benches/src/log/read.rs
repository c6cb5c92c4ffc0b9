//! Reads logs and puts together what belongs together.

use super::{HEAD, Origin, ROW, Rest};
use crate::generator::new_histogram;
use crate::process::Usage;
use crate::report::{Report, Row, Source};
use crate::wire::Totals;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry};
use std::collections::VecDeque;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The share of the shorter run that must overlap the longer one when two runs are merged.
const OVERLAP: f64 = 0.8;

/// Stamps further than this before the start of their log count from that start, as in logs of other tools.
const ABSOLUTE: Duration = Duration::from_secs(365 * 24 * 3600);

/// The year 10000. A file with a later time is no log, and sums of earlier times do not overflow.
const FAR: Duration = Duration::from_secs(253_402_300_800);

/// Makes one report of several logs.
pub(crate) fn merge(files: &[PathBuf]) -> io::Result<Report> {
    let (mut origins, mut rows, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
        let (origin, found) = read(file).map_err(named)?;
        origins.push(origin);
        parts.extend(found.iter().map(|row| (row.name.clone(), row.scenario.clone(), row.totals.clone())));
        found.into_iter().for_each(|row| add(row, &mut rows));
    }
    rows.iter_mut().for_each(|row| row.totals.server = usage(row, &parts));
    for number in 0..rows.len() {
        // The place among the servers, by the order in which they came.
        let first = rows.iter().position(|row: &Row| row.name == rows[number].name).unwrap_or(number);
        rows[number].place = if first == number { servers(&rows[..number]) } else { rows[first].place };
    }
    let rate = |row: &Row| row.asked.unwrap_or(0.0);
    rows.sort_by(|a, b| a.place.cmp(&b.place).then(rate(a).total_cmp(&rate(b))));
    let begun = rows.iter().filter(|row| is_measured(row)).map(|row| row.totals.begun).min();
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

/// Returns the rows of one log. Rows with equal tags are merged, since their intervals follow each other.
fn read(file: &Path) -> io::Result<(Origin, Vec<Row>)> {
    let text = fs::read_to_string(file)?;
    let mut origin = Origin { load: "a log of another program".into(), ..Origin::default() };
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
    let mut rest = rest.unwrap_or_else(|| {
        let (replies, elapsed) = (latencies.len(), interval.duration());
        Rest { totals: Totals { replies, elapsed, ..Totals::default() }, ..Rest::default() }
    });
    let begun = base.checked_add(interval.start_timestamp());
    let begun = begun.filter(|begun| begun.checked_add(rest.totals.elapsed).is_some_and(|end| end < FAR));
    rest.totals.begun = begun.ok_or_else(|| invalid("a time is beyond all calendars"))?;
    let (name, scenario) = tag.split_once('/').unwrap_or((tag, ""));
    Ok(Row {
        place: 0,
        name: if name.is_empty() { "untagged".into() } else { name.into() },
        about: rest.about,
        scenario: scenario.into(),
        asked: rest.asked,
        totals: rest.totals,
        latencies,
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

/// Returns true if a row reached its measured time.
fn is_measured(row: &Row) -> bool {
    !row.totals.elapsed.is_zero()
}

/// Adds a row of another generator: the rates add up.
fn add(row: Row, rows: &mut Vec<Row>) {
    let Some(sum) = rows.iter_mut().find(|sum| sum.name == row.name && sum.scenario == row.scenario) else {
        return rows.push(row);
    };
    sum.asked = sum.asked.zip(row.asked).map(|(one, other)| one + other);
    match (is_measured(sum), is_measured(&row)) {
        (true, true) => add_times(sum, &row),
        (false, _) => (sum.totals.begun, sum.totals.elapsed) = (row.totals.begun, row.totals.elapsed),
        (true, false) => {}
    }
    absorb(sum, row);
}

fn add_times(sum: &mut Row, row: &Row) {
    let (rate, one, other) = (sum.rate() + row.rate(), &mut sum.totals, &row.totals);
    let is_apart = overlap(one, other) < OVERLAP * one.elapsed.min(other.elapsed).as_secs_f64();
    let end = (one.begun + one.elapsed).max(other.begun + other.elapsed);
    one.begun = one.begun.min(other.begun);
    // Of runs side by side the rates are summed; this is the time in which the sum of the replies has that
    // rate.
    one.elapsed = match rate > 0.0 {
        true => Duration::from_secs_f64(one.replies.saturating_add(other.replies) as f64 / rate),
        false => end - one.begun,
    };
    if is_apart {
        add_note(sum, "the logs are not of the same time, so that the rates do not add up".into());
    }
}

/// Adds a later row of one generator.
fn append(row: Row, rows: &mut Vec<Row>) {
    let Some(sum) = rows.iter_mut().find(|sum| sum.name == row.name && sum.scenario == row.scenario) else {
        return rows.push(row);
    };
    sum.totals.elapsed += row.totals.elapsed;
    absorb(sum, row);
}

/// Adds all but the times. Saturates, since a log may hold any numbers.
fn absorb(sum: &mut Row, row: Row) {
    let (totals, more) = (&mut sum.totals, row.totals);
    totals.connected = totals.connected.saturating_add(more.connected);
    totals.replies = totals.replies.saturating_add(more.replies);
    totals.own_cpu = totals.own_cpu.saturating_add(more.own_cpu);
    totals.server = None;
    totals.unsent = totals.unsent.saturating_add(more.unsent);
    totals.unanswered = totals.unanswered.saturating_add(more.unanswered);
    totals.faults.add(&more.faults);
    // Both histograms have the bounds of ours.
    sum.latencies += row.latencies;
    sum.errors.extend(row.errors);
    row.notes.into_iter().for_each(|note| add_note(sum, note));
}

/// Adds a note, unless another generator has it already.
fn add_note(row: &mut Row, note: String) {
    if !row.notes.contains(&note) {
        row.notes.push(note);
    }
}

/// Returns for how many seconds both were measured.
fn overlap(one: &Totals, other: &Totals) -> f64 {
    let end = (one.begun + one.elapsed).min(other.begun + other.elapsed);
    end.saturating_sub(one.begun.max(other.begun)).as_secs_f64()
}

/// The name, the scenario and the totals of a row in one log.
type Part = (String, String, Totals);

/// Returns the usage of the server, if exactly one log has it: the log of the generator that started it.
///
/// The server used it for the replies that all generators had in that one's interval, if they came evenly. The
/// row gets its share for as many as it has. Of several logs that say so each had its own server.
fn usage(row: &Row, parts: &[Part]) -> Option<Usage> {
    let is_of_row = |(name, scenario, _): &&Part| *name == row.name && *scenario == row.scenario;
    let totals = || parts.iter().filter(is_of_row).map(|(.., totals)| totals);
    let mut known = totals().filter_map(|totals| Some((totals, totals.server?)));
    let ((starter, usage), None) = (known.next()?, known.next()) else { return None };
    let measured = totals().filter(|totals| !totals.elapsed.is_zero());
    let during =
        measured.map(|part| part.replies as f64 * overlap(part, starter) / part.elapsed.as_secs_f64());
    let cpu = usage.cpu.as_secs_f64() * row.totals.replies as f64 / during.sum::<f64>();
    Some(Usage { cpu: Duration::try_from_secs_f64(cpu).ok()?, ..usage })
}
