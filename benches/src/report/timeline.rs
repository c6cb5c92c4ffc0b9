//! Replies per second as time goes by.

use super::chart::{Axis, Line, draw};
use super::figure::{Figure, legend};
use super::{Report, units};
use crate::wire::Progress;

const ABOUT: &str =
    "The warm-up is included. Higher is better; a dent is a moment in which the server stood still.";

/// Draws replies per second over time. A server that stalls shows here.
pub(super) fn figure(report: &Report) -> Option<Figure> {
    let seen: Vec<_> = report.faces().into_iter().filter(|row| row.timeline.len() > 1).collect();
    let point = |point: &Progress| (point.elapsed.as_secs_f64(), point.rate);
    let points = || seen.iter().flat_map(|row| &row.timeline).map(point);
    let length = points().map(|(elapsed, _)| elapsed).fold(0.0, f64::max);
    let highest = points().map(|(_, rate)| rate).fold(1.0, f64::max);
    if length <= 0.0 {
        return None;
    }
    let lines =
        seen.iter().map(|row| Line { number: row.hue(), points: row.timeline.iter().map(point).collect() });
    let chart = draw(
        300,
        Axis {
            title: "seconds since the start",
            range: 0.0..length,
            label: &|seconds| ((seconds * 100.0).round() / 100.0).to_string(),
        },
        Axis {
            title: "requests per second",
            range: 0.0..highest * 1.05,
            label: &|rate| units::count(*rate as u64),
        },
        &lines.collect::<Vec<_>>(),
        Vec::new(),
    );
    Some(Figure {
        title: "Requests per second, as time goes by",
        about: ABOUT.into(),
        legend: legend(&seen),
        panels: vec![("", chart)],
    })
}
