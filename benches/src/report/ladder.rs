//! The latency under growing rates: a chart for each percentile, a line for each server.

use super::chart::{Axis, Drawing, Line, draw, heights, log_range};
use super::figure::{Figure, legend};
use super::{Report, Row, units};

/// The percentiles that are drawn.
const DRAWN: [(&str, f64); 3] = [("median", 0.5), ("99th percentile", 0.99), ("99.9th percentile", 0.999)];

const ABOUT: &str = "Each request was sent when it was due, and its latency counts from then: where a line leaves upwards, the \
                     server no longer keeps up with what is asked. Point at a chart for the figures.";

/// The charts, if there is a ladder with anything on it.
pub(super) fn figure(report: &Report) -> Option<Figure> {
    let mut rates: Vec<f64> = report.rows.iter().filter_map(|row| row.asked).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let servers = report.faces();
    let panel = |(name, share)| (name, chart(report, &servers, &rates, share));
    (rates.len() >= 2).then(|| Figure {
        title: "Latency by rate",
        about: ABOUT.into(),
        legend: legend(&servers),
        panels: DRAWN.map(panel).into(),
    })
}

/// The chart of one percentile.
fn chart(report: &Report, servers: &[&Row], rates: &[f64], share: f64) -> Drawing {
    let latency = |server: &Row, rate: f64| {
        let row = report.rows.iter().find(|row| row.place == server.place && row.asked == Some(rate))?;
        row.latency(share)
    };
    let line = |server: &&Row| {
        let point = |&rate: &f64| Some((rate, latency(server, rate)? as f64));
        Line { number: server.hue(), points: rates.iter().filter_map(point).collect() }
    };
    let hint = |&rate: &f64| {
        let texts = servers.iter().map(|server| {
            format!("\n{}: {}", server.name, latency(server, rate).map_or_else(|| "–".into(), units::nanos))
        });
        (rate, format!("{} req/s{}", units::rate(rate), texts.collect::<String>()))
    };
    let lines: Vec<Line> = servers.iter().map(line).collect();
    draw(
        300,
        Axis {
            title: "requests per second asked for",
            range: log_range(rates[0] * 0.9, rates[rates.len() - 1] * 1.1),
            label: &|rate| units::rate(*rate),
        },
        Axis { title: "latency", range: heights(&lines), label: &|nanos| units::short_time(*nanos as u64) },
        &lines,
        rates.iter().map(hint).collect(),
    )
}
