//! The results as JSON. Times are in nanoseconds, sizes in bytes.

use super::{CrossCheck, Report, Row, Source};
use crate::options::Options;
use crate::wire::Protocol;
use serde_json::{Value, json};
use std::time::UNIX_EPOCH;

/// The shares of requests for which a latency is given.
const SHARES: [f64; 12] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 1.0];

/// Returns the report as a JSON text of one line.
pub(crate) fn render(report: &Report) -> String {
    let started = report.started.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    // The machines of the logs stand with them.
    let (settings, machine, logs) = match &report.source {
        Source::Run { options, protocol, machine } => {
            (settings(options, *protocol), json!(machine), Value::Null)
        }
        Source::Logs(origins) => (Value::Null, Value::Null, json!(origins)),
    };
    let value = json!({
        "tool": "fibra load",
        "version": env!("CARGO_PKG_VERSION"),
        "started_unix": started,
        "settings": settings,
        "logs": logs,
        "machine": machine,
        "pinned": { "server": report.places.0, "generator": report.places.1 },
        "servers": report.rows.iter().map(server).collect::<Vec<_>>(),
        "cross_check": report.cross_check.as_ref().map(cross_check),
        "interrupted": report.interrupted,
        "clean": report.is_clean(),
    });
    format!("{value}\n")
}

fn settings(options: &Options, protocol: Protocol) -> Value {
    let sizes =
        options.size.parts().iter().map(|(bytes, weight)| json!({ "bytes": bytes, "weight": weight }));
    json!({
        "protocol": protocol,
        "path": options.path,
        "connections": options.connections,
        "idle": options.idle,
        "churn": options.churn,
        "sizes": sizes.collect::<Vec<_>>(),
        "pipeline": options.pipeline,
        "rates": options.rates().into_iter().flatten().collect::<Vec<_>>(),
        "duration_ns": options.duration.as_nanos() as u64,
        "warmup_ns": options.warmup.as_nanos() as u64,
        "timeout_ns": options.timeout.as_nanos() as u64,
    })
}

fn server(row: &Row) -> Value {
    json!({
        "name": row.name,
        "about": row.about,
        "scenario": row.scenario,
        "asked_per_second": row.asked,
        "connected": row.totals.connected,
        "replies": row.totals.replies,
        "elapsed_ns": row.totals.elapsed.as_nanos() as u64,
        "requests_per_second": row.rate(),
        "latency": latency(row),
        "server_cpu_ns": row.totals.server.map(|usage| usage.cpu.as_nanos() as u64),
        "server_cpu_per_request_ns": row.cpu_per_request(),
        "server_busy": row.server_busy(),
        "resident_bytes": row.totals.server.map(|usage| usage.resident),
        "peak_resident_bytes": row.totals.server.map(|usage| usage.peak),
        "generator_busy": row.generator_busy(),
        "unsent": row.totals.unsent,
        "unanswered": row.totals.unanswered,
        "faults": row.totals.faults,
        "errors": row.errors,
        "notes": row.notes,
        "timeline": row.timeline.iter().map(|progress| json!({
            "elapsed_ns": progress.elapsed.as_nanos() as u64,
            "measuring": progress.measuring,
            "requests_per_second": progress.rate,
            "p99_ns": progress.p99,
        })).collect::<Vec<_>>(),
    })
}

fn latency(row: &Row) -> Value {
    let percentiles = SHARES.map(|share| json!({ "share": share, "ns": row.latency(share) }));
    let buckets = row.latencies.iter_recorded().map(|v| json!([v.value_iterated_to(), v.count_at_value()]));
    json!({
        "unit": "ns",
        "count": row.latencies.len(),
        "mean": row.latencies.mean(),
        "max": row.latency(1.0),
        "percentiles": percentiles,
        "histogram": buckets.collect::<Vec<_>>(),
    })
}

fn cross_check(check: &CrossCheck) -> Value {
    json!({ "client": "plain threads", "ratio": check.ratio, "server": server(&check.row) })
}
