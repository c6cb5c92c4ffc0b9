//! Writes a log.

use super::{HEAD, Origin, ROW, Rest};
use crate::report::{Report, Row};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::io;

/// The log has nanoseconds; the greatest latency of each line is there for people, in milliseconds.
const MAX_DIVISOR: f64 = 1e6;

/// The latencies of all rows as the text of a log.
pub(crate) fn render(report: &Report) -> io::Result<String> {
    let (mut text, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let origin = Origin {
        file: String::new(),
        load: report.load(),
        machine: report.machine(),
        interrupted: report.interrupted,
    };
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(&format!("fibra load {}; latencies in nanoseconds", env!("CARGO_PKG_VERSION")))
        .add_comment(&format!("{HEAD}{}", serde_json::to_string(&origin)?))
        .with_start_time(report.started)
        .with_max_value_divisor(MAX_DIVISOR)
        .begin_log_with(&mut text, &mut serializer)?;
    for row in &report.rows {
        let tag = tag(row);
        log.write_comment(&format!("{ROW}{}", serde_json::to_string(&rest(row, &tag))?))?;
        log.write_histogram(&row.latencies, row.totals.begun, row.totals.elapsed, Tag::new(&tag))
            .map_err(io::Error::other)?;
    }
    String::from_utf8(text).map_err(io::Error::other)
}

/// The server and the scenario, without what a tag may not have.
fn tag(row: &Row) -> String {
    format!("{}/{}", row.name, row.scenario).replace([',', ' ', '\r', '\n'], "_")
}

fn rest(row: &Row, tag: &str) -> Rest {
    Rest {
        tag: tag.into(),
        about: row.about.clone(),
        asked: row.asked,
        totals: row.totals.clone(),
        errors: row.errors.clone(),
        notes: row.notes.clone(),
    }
}
