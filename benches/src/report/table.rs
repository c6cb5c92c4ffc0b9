//! The table for the terminal.

use super::{PERCENTILES, Report, Row, units};
use std::fmt::Write as _;

/// What stands where there is nothing to say.
const NOTHING: &str = "-";

/// The headings of the columns; the page uses them too.
pub(crate) fn headings(report: &Report) -> Vec<&'static str> {
    let mut headings = vec!["server"];
    if report.is_ladder() {
        headings.push("asked/s");
    }
    headings.push(report.unit());
    headings.extend(PERCENTILES.map(|(name, _)| name));
    headings.extend(["max", "CPU/req", "memory"]);
    if has_losses(report) {
        headings.push("lost");
    }
    headings.push("errors");
    headings
}

/// The cells of a row, one for each heading.
pub(crate) fn cells(report: &Report, row: &Row) -> Vec<String> {
    let time = |nanos: Option<u64>| nanos.map_or_else(|| NOTHING.into(), units::nanos);
    let mut cells = vec![row.name.clone()];
    if report.is_ladder() {
        cells.push(row.asked.map_or_else(|| NOTHING.into(), units::rate));
    }
    cells.push(units::rate(row.rate()));
    cells.extend(PERCENTILES.map(|(_, share)| time(row.latency(share))));
    cells.push(time(row.longest()));
    cells.push(time(row.cpu_per_request()));
    cells.push(row.server.map_or_else(|| NOTHING.into(), |usage| units::bytes(usage.resident)));
    if has_losses(report) {
        cells.push(units::count(row.unanswered));
    }
    cells.push(units::count(row.faults.total().max(row.errors.len() as u64)));
    cells
}

fn has_losses(report: &Report) -> bool {
    report.rows.iter().any(|row| row.unanswered > 0)
}

/// The whole report as text.
pub(crate) fn render(report: &Report) -> String {
    let mut lines = vec![headings(report).into_iter().map(String::from).collect()];
    lines.extend(report.rows.iter().map(|row| cells(report, row)));
    let mut text = format!("\n{}\n{}\n\n", report.load(), report.machine());
    align(&lines, &mut text);
    text.push('\n');
    for row in &report.rows {
        remark(row, &row.title(), &mut text);
    }
    if let Some(check) = &report.cross_check {
        let _ = writeln!(text, "{}", check.sentence());
        remark(&check.row, "cross-check", &mut text);
    }
    if report.interrupted {
        text.push_str("interrupted: this is the report so far\n");
    }
    text
}

fn remark(row: &Row, name: &str, text: &mut String) {
    for error in &row.errors {
        let _ = writeln!(text, "error: {name}: {error}");
    }
    for note in &row.notes {
        let _ = writeln!(text, "note: {name}: {note}");
    }
}

/// Writes the lines with a rule below the first; the first column to the left, the others to the right.
fn align(lines: &[Vec<String>], text: &mut String) {
    let columns = lines.first().map_or(0, Vec::len);
    let width_of = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width_of).collect();
    for (number, line) in lines.iter().enumerate() {
        let _ = write!(text, "{:<width$}", line[0], width = widths[0]);
        for (cell, width) in line.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
        if number == 0 {
            let length = widths.iter().sum::<usize>() + 2 * (columns - 1);
            let _ = writeln!(text, "{}", "─".repeat(length));
        }
    }
}

#[cfg(test)]
mod tests;
