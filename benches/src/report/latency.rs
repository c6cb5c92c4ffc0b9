//! Latency by percentile: a curve for each server.

use super::chart::{Axis, Drawing, Line, draw, heights};
use super::figure::{Figure, legend};
use super::{Report, Row, units};
use plotters::prelude::{BindKeyPoints, IntoLogRange};

/// How finely the latency curves are drawn.
const STEPS: usize = 200;

/// The share of requests that may lie below the latency axis.
const LUCKY: f64 = 0.1;

/// The marks of the percentile axis.
const MARKS: [f64; 7] = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

const ABOUT: &str = "How long the slowest requests took, ever fewer of them to the right: at 99.9, one in a thousand took longer. \
                     Both axes are logarithmic; lower is better. Point at the chart for the figures.";

/// The figure, if any request was answered.
pub(super) fn figure(report: &Report) -> Option<Figure> {
    let seen: Vec<_> = report.faces().into_iter().filter(|row| !row.latencies.is_empty()).collect();
    if seen.is_empty() {
        return None;
    }
    let of =
        if report.is_ladder() { " Of each server it is the highest rate that it kept up with." } else { "" };
    Some(Figure {
        title: "Latency by percentile",
        about: format!("{ABOUT}{of}"),
        legend: legend(&seen),
        panels: vec![("", chart(&seen))],
    })
}

/// Draws curves over the count of requests of which one is slower, by its logarithm: 1 is 90 %, 2 is 99 %.
/// Each goes as far to the right as its count of requests bears.
fn chart(rows: &[&Row]) -> Drawing {
    let reach = |row: &Row| (row.latencies.len().max(1) as f64).log10();
    let end = rows.iter().map(|row| reach(row)).fold(1.0, f64::max).min(5.0);
    let steps: Vec<f64> = (0..=STEPS).map(|step| end * step as f64 / STEPS as f64).collect();
    let latency = |row: &Row, nines: f64| row.latency(share(nines)).filter(|_| nines <= reach(row) + 1e-9);
    // The luckiest few would take half the height.
    let low = rows.iter().filter_map(|row| row.latency(LUCKY)).min().unwrap_or(1);
    let line = |row: &&Row| {
        let point = |&nines: &f64| Some((10f64.powf(nines), latency(row, nines)?.max(low) as f64));
        Line { number: row.hue(), points: steps.iter().filter_map(point).collect() }
    };
    let hint = |&nines: &f64| {
        let texts = rows.iter().map(|row| {
            format!("\n{}: {}", row.name, latency(row, nines).map_or_else(|| "–".into(), units::nanos))
        });
        (10f64.powf(nines), format!("{}{}", percentile_name(share(nines)), texts.collect::<String>()))
    };
    let lines: Vec<Line> = rows.iter().map(line).collect();
    let marks =
        MARKS.map(|share| 1.0 / (1.0 - share)).into_iter().filter(|mark| mark.log10() <= end).collect();
    draw(
        440,
        Axis {
            title: "percentile of requests (%)",
            range: (1.0..10f64.powf(end)).log_scale().with_key_points(marks),
            label: &|slower| format!("{}", ((1.0 - 1.0 / slower) * 1e7).round() / 1e5),
        },
        Axis { title: "latency", range: heights(&lines), label: &|nanos| units::short_time(*nanos as u64) },
        &lines,
        steps.iter().map(hint).collect(),
    )
}

/// Where a share of requests stands on the axis.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// The share at a place on the axis.
fn share(nines: f64) -> f64 {
    1.0 - 10f64.powf(-nines)
}

fn percentile_name(share: f64) -> String {
    let percent = share * 100.0;
    // One digit more than the nines it has.
    let digits = (nines(share) - 1.0).ceil().clamp(0.0, 4.0) as usize;
    format!("p{percent:.digits$}")
}

#[cfg(test)]
mod tests;
