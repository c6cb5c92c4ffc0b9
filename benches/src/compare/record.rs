//! The figures as JSON. Times are in nanoseconds, sizes in bytes.

use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use super::figures::{Figure, Row, Verdict};
use super::{Findings, versions};

/// Returns the findings as a JSON text of one line.
pub(super) fn render(findings: &Findings) -> String {
    let started = findings.started.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let value = json!({
        "tool": "fibra compare",
        "started_unix": started,
        "machine": findings.machine,
        "versions": versions(),
        "rounds": findings.rounds,
        "sample_ns": findings.sample.as_nanos() as u64,
        "rows": findings.rows.iter().map(row).collect::<Vec<_>>(),
        "faults": findings.faults,
        "interrupted": findings.interrupted,
    });
    format!("{value}\n")
}

fn row(row: &Row) -> Value {
    json!({
        "subject": row.subject,
        "question": row.name,
        "workers": row.workers,
        "measure": row.measure,
        "entrants": row.figures.iter().map(figure).collect::<Vec<_>>(),
        "best_rival": row.standing.as_ref().map(|standing| &standing.of),
        "ratio_to_best_rival": row.standing.as_ref().map(|standing| standing.ratio),
        "targets": row.verdicts.iter().map(verdict).collect::<Vec<_>>(),
        "not_judged": row.unjudged.len(),
    })
}

fn figure(figure: &Figure) -> Value {
    let [lower, median, upper] = figure.quartiles;
    json!({
        "name": figure.entrant,
        "median": median,
        "quartiles": [lower, upper],
        "samples": figure.samples,
    })
}

fn verdict(verdict: &Verdict) -> Value {
    json!({
        "entrant": verdict.entrant,
        "in_proportion_to": verdict.of,
        "at_most": verdict.most,
        "reached": verdict.reached,
        "met": verdict.is_met(),
    })
}
