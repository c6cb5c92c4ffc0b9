//! What becomes of the latency when more and more is asked: a chart for each percentile, a line for each server.

use super::chart::{Axis, Chart, Line, LogScale, Tick, linear_ticks};
use super::figure::{Figure, Format, Panel, legend};
use super::{Report, Row, units};
use serde_json::json;

/// The percentiles that are drawn.
const DRAWN: [(&str, f64); 3] = [("median", 0.5), ("99th percentile", 0.99), ("99.9th percentile", 0.999)];

/// A ladder whose highest rung is farther from the lowest than this is drawn on a logarithmic axis.
const WIDE_LADDER: f64 = 12.0;

/// The rungs of all servers, and where each stands on the axis.
struct Rungs {
    rates: Vec<f64>,
    places: Vec<f64>,
    ticks: Vec<Tick>,
}

const ABOUT: &str = "Each request was sent when it was due, and its latency counts from then: where a line leaves upwards, the \
                     server no longer keeps up with what is asked. Point at a chart for the figures.";

/// The charts, if there is a ladder with anything on it.
pub(super) fn figure(report: &Report) -> Option<Figure> {
    let (rungs, servers) = (Rungs::of(&report.rows), report.faces());
    let panel = |(name, share): (&'static str, f64)| {
        let (chart, data) = chart(report, &servers, &rungs, name, share);
        Panel::new(name, &chart, data, Format::LowLabelled)
    };
    (rungs.rates.len() >= 2).then(|| Figure {
        title: "Latency by rate",
        about: ABOUT.into(),
        legend: legend(&servers),
        panels: DRAWN.map(panel).into(),
    })
}

impl Rungs {
    fn of(rows: &[Row]) -> Self {
        let mut rates: Vec<f64> = rows.iter().filter_map(|row| row.asked).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let (low, high) = (rates.first().copied().unwrap_or(1.0), rates.last().copied().unwrap_or(1.0));
        let (places, ticks) = match high / low > WIDE_LADDER {
            true => {
                let scale = LogScale::covering(low, high);
                (rates.iter().map(|&rate| scale.share(rate)).collect(), scale.ticks(units::rate))
            }
            false => {
                let (end, ticks) = linear_ticks(high, units::rate);
                (rates.iter().map(|rate| rate / end).collect(), ticks)
            }
        };
        Self { rates, places, ticks }
    }

    /// The latency of a server at each of the rungs.
    fn latencies(&self, report: &Report, server: &Row, share: f64) -> Vec<Option<u64>> {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.place == server.place).collect();
        let latency = |rate: &f64| rows.iter().find(|row| row.asked == Some(*rate))?.latency(share);
        self.rates.iter().map(latency).collect()
    }
}

/// The chart of one percentile, and its data for a reader that points at it.
fn chart(report: &Report, servers: &[&Row], rungs: &Rungs, name: &str, share: f64) -> (Chart, String) {
    let all: Vec<_> = servers.iter().map(|server| rungs.latencies(report, server, share)).collect();
    let known = || all.iter().flatten().flatten().copied();
    let scale = LogScale::covering(known().min().unwrap_or(1) as f64, known().max().unwrap_or(1) as f64);
    let line = |(server, latencies): (&&Row, &Vec<Option<u64>>)| {
        let point = |(&at, latency): (&f64, &Option<u64>)| Some((at, scale.share((*latency)? as f64)));
        let points = rungs.places.iter().zip(latencies).filter_map(point).collect();
        Line { name: server.name.clone(), number: server.hue(), points }
    };
    let chart = Chart {
        description: format!("Latency by rate, {name}"),
        x: Axis { title: "requests per second asked for".into(), ticks: rungs.ticks.clone() },
        y: Axis { title: "latency".into(), ticks: scale.ticks(|value| units::short_time(value as u64)) },
        lines: servers.iter().zip(&all).map(line).collect(),
    };
    (chart, data(servers, rungs, &all))
}

fn data(servers: &[&Row], rungs: &Rungs, latencies: &[Vec<Option<u64>>]) -> String {
    let names = rungs.rates.iter().map(|&rate| format!("{} req/s", units::rate(rate)));
    let curves = servers.iter().zip(latencies).map(|(server, latencies)| {
        let text = latencies.iter().map(|latency| latency.map_or_else(|| "–".into(), units::nanos));
        json!({ "name": server.name, "number": server.hue(), "text": text.collect::<Vec<_>>() })
    });
    json!({
        "names": names.collect::<Vec<_>>(),
        "places": rungs.places,
        "curves": curves.collect::<Vec<_>>(),
    })
    .to_string()
}
