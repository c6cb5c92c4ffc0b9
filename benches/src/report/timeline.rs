//! Replies per second as time goes by.

use super::chart::{Axis, Chart, Line, Tick, linear_ticks};
use super::figure::{Figure, Format, Panel, legend};
use super::{Report, units};
use crate::wire::Progress;

const ABOUT: &str =
    "The warm-up is included. Higher is better; a dent is a moment in which the server stood still.";

/// Replies per second as time goes by: a server that stands still now and then shows here.
pub(super) fn figure(report: &Report) -> Option<Figure> {
    let seen: Vec<_> = report.faces().into_iter().filter(|row| row.timeline.len() > 1).collect();
    let points = || seen.iter().flat_map(|row| &row.timeline);
    let length = points().map(|point| point.elapsed.as_secs_f64()).fold(0.0, f64::max);
    let highest = points().map(|point| point.rate).fold(0.0, f64::max);
    if length <= 0.0 {
        return None;
    }
    let (high, y_ticks) = linear_ticks(highest, |value| units::count(value as u64));
    let lines = seen.iter().map(|row| {
        let point = |point: &Progress| (point.elapsed.as_secs_f64() / length, point.rate / high);
        Line { name: row.name.clone(), number: row.hue(), points: row.timeline.iter().map(point).collect() }
    });
    let chart = Chart {
        description: "Requests per second as time goes by".into(),
        x: Axis { title: "seconds since the start".into(), ticks: second_ticks(length) },
        y: Axis { title: "requests per second".into(), ticks: y_ticks },
        lines: lines.collect(),
    };
    Some(Figure {
        title: "Requests per second, as time goes by",
        about: ABOUT.into(),
        legend: legend(&seen),
        panels: vec![Panel::new("", &chart, String::new(), Format::Low)],
    })
}

/// Marks at round numbers of seconds, as far as the axis goes.
fn second_ticks(length: f64) -> Vec<Tick> {
    let step = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0];
    let step = step.into_iter().find(|step| length / step <= 8.0).unwrap_or(length / 8.0);
    let digits = usize::from(step < 1.0);
    let steps = (length / step + 1e-9).floor() as u32;
    let tick = |number: u32| {
        let seconds = f64::from(number) * step;
        Tick { at: seconds / length, label: format!("{seconds:.digits$}") }
    };
    (0..=steps).map(tick).collect()
}

#[cfg(test)]
mod tests;
