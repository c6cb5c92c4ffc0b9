//! The table for the terminal.

use super::{PERCENTILES, Report, Row, units};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use std::fmt::Write as _;

/// The text of an empty cell.
const NONE: &str = "-";

/// The separator of columns.
const GAP: u16 = 2;

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

/// Returns the cells of a row, one for each heading.
pub(crate) fn cells(report: &Report, row: &Row) -> Vec<String> {
    let time = |nanos: Option<u64>| nanos.map_or_else(|| NONE.into(), units::nanos);
    let mut cells = vec![row.name.clone()];
    if report.is_ladder() {
        cells.push(row.asked.map_or_else(|| NONE.into(), units::rate));
    }
    cells.push(units::rate(row.rate()));
    cells.extend(PERCENTILES.map(|(_, share)| time(row.latency(share))));
    cells.push(time(row.latency(1.0)));
    cells.push(time(row.cpu_per_request()));
    cells.push(row.totals.server.map_or_else(|| NONE.into(), |usage| units::bytes(usage.resident)));
    if has_losses(report) {
        cells.push(units::count(row.totals.unanswered));
    }
    cells.push(units::count(row.totals.faults.total().max(row.errors.len() as u64)));
    cells
}

fn has_losses(report: &Report) -> bool {
    report.rows.iter().any(|row| row.totals.unanswered > 0)
}

/// Returns the whole report as text.
pub(crate) fn render(report: &Report) -> String {
    let head = headings(report).into_iter().map(String::from).collect();
    let table = lay_out(head, report.rows.iter().map(|row| cells(report, row)));
    let mut text = format!("\n{}\n{}\n\n{table}\n\n", report.load(), report.machine());
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

/// Lays out a table with a rule below its head. The first column is aligned left, all others right.
pub(crate) fn lay_out(head: Vec<String>, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─');
    table.load_style(TableStyle::new().header_separator(rule)).set_header(head).add_rows(rows);
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if number == 0 { 0 } else { GAP }, 0));
        let side = if number == 0 { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(side);
    }
    table
}

#[cfg(test)]
mod tests;
