//! Latency by percentile: a curve for each server.

use super::chart::{Axis, Chart, Line, LogScale, Tick};
use super::figure::{Figure, Format, Panel, legend};
use super::units::short_time;
use super::{Report, Row, units};
use serde_json::json;

/// How finely the latency curves are drawn.
const STEPS: usize = 200;

/// The share of requests that may lie below the latency axis.
const LUCKY: f64 = 0.1;

/// The marks of the percentile axis.
const MARKS: [(f64, &str); 7] = [
    (0.0, "0"),
    (0.5, "50"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999"),
];

const ABOUT: &str = "How long the slowest requests took, ever fewer of them to the right: at 99.9, one in a thousand took longer. \
                     Both axes are logarithmic; lower is better. Point at the chart for the figures.";

/// The figure, if any request was answered.
pub(super) fn figure(report: &Report) -> Option<Figure> {
    let seen: Vec<_> = report.faces().into_iter().filter(|row| !row.latencies.is_empty()).collect();
    if seen.is_empty() {
        return None;
    }
    let (chart, data) = latency_chart(&seen);
    let of =
        if report.is_ladder() { " Of each server it is the highest rate that it kept up with." } else { "" };
    Some(Figure {
        title: "Latency by percentile",
        about: format!("{ABOUT}{of}"),
        legend: legend(&seen),
        panels: vec![Panel::new("", &chart, data, Format::Tall)],
    })
}

/// The curves, and their data for a reader that points at them.
fn latency_chart(rows: &[&Row]) -> (Chart, String) {
    // As far to the right as the largest count bears: with a thousand requests, 99.9.
    let most = rows.iter().map(|row| row.latencies.len()).max().unwrap_or(1);
    let reach = decades(most).clamp(1.0, 5.0);
    let shares: Vec<f64> = (0..=STEPS).map(|step| to_share(reach * step as f64 / STEPS as f64)).collect();
    // The luckiest few are left out, or they would take half the height.
    let low = rows.iter().filter_map(|row| row.latency(LUCKY)).min().unwrap_or(1);
    let high = rows.iter().filter_map(|row| row.latency(to_share(reach))).max().unwrap_or(1);
    let scale = LogScale::covering(low as f64, high as f64);
    let ticks = MARKS.iter().map(|&(share, label)| (decades_of(share) / reach, label));
    let ticks = ticks.filter(|(at, _)| *at <= 1.0 + 1e-9).map(|(at, label)| Tick { at, label: label.into() });
    let chart = Chart {
        description: describe(rows),
        x: Axis { title: "percentile of requests (%)".into(), ticks: ticks.collect() },
        y: Axis {
            title: "latency (from µs to s, as marked)".into(),
            ticks: scale.ticks(|value| short_time(value as u64)),
        },
        lines: rows.iter().map(|row| curve(row, reach, &shares, scale)).collect(),
    };
    (chart, curve_data(rows, reach, &shares))
}

fn curve(row: &Row, reach: f64, shares: &[f64], scale: LogScale) -> Line {
    let own_reach = decades(row.latencies.len());
    let point = |(step, &share): (usize, &f64)| {
        let at = step as f64 / STEPS as f64;
        (at * reach <= own_reach + 1e-9).then(|| (at, scale.share(row.latency(share).unwrap_or(1) as f64)))
    };
    Line {
        name: row.name.clone(),
        number: row.hue(),
        points: shares.iter().enumerate().filter_map(point).collect(),
    }
}

fn curve_data(rows: &[&Row], reach: f64, shares: &[f64]) -> String {
    let names: Vec<_> = shares.iter().map(|&share| percentile_name(share)).collect();
    let curves = rows.iter().map(|row| {
        let own_reach = decades(row.latencies.len());
        let text = |(step, &share): (usize, &f64)| {
            let within = reach * step as f64 / STEPS as f64 <= own_reach + 1e-9;
            row.latency(share).filter(|_| within).map_or_else(|| "–".into(), units::nanos)
        };
        json!({ "name": row.name, "number": row.hue(), "text": shares.iter().enumerate().map(text).collect::<Vec<_>>() })
    });
    json!({ "names": names, "curves": curves.collect::<Vec<_>>() }).to_string()
}

/// How many nines `count` requests can tell: the logarithm of the count.
fn decades(count: u64) -> f64 {
    (count.max(1) as f64).log10()
}

/// Where a share stands on the axis.
fn decades_of(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// The share at a place on the axis.
fn to_share(decades: f64) -> f64 {
    1.0 - 10f64.powf(-decades)
}

fn percentile_name(share: f64) -> String {
    let percent = share * 100.0;
    // One digit more than the nines it has.
    let digits = (decades_of(share) - 1.0).ceil().clamp(0.0, 4.0) as usize;
    format!("p{percent:.digits$}")
}

fn describe(rows: &[&Row]) -> String {
    let latency = |row: &Row, share| row.latency(share).map_or_else(|| "none".into(), units::nanos);
    let parts = rows.iter().map(|row| {
        format!("{}: median {}, 99th percentile {}", row.name, latency(row, 0.5), latency(row, 0.99))
    });
    format!("Latency by percentile. {}.", parts.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests;
