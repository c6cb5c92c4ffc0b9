//! The tables for the terminal, which fit into 120 columns.

use std::fmt::Write as _;

use comfy_table::CellAlignment;

use super::figures::{Figure, Row, Verdict};
use super::question::Measure;
use crate::report::{table, units};

/// How wide a table may be, how narrow its names, and what the ratio and the marks need.
const WIDTH: usize = 120;
const NAMES: usize = 24;
const STANDING: usize = 12;

/// How narrow a column of figures may be.
const NARROWEST: usize = 7;

/// The text of a cell of an entrant that was not asked.
const NOTHING: &str = "·";

/// The rows of one subject, with the entrants that appear in them as columns. Those that do not fit come in a
/// second table.
pub(super) fn render(rows: &[Row]) -> String {
    let name_width = rows.iter().map(|row| row.label().chars().count()).max().unwrap_or(0).max(NAMES);
    let (all, mut text) = (columns(rows), String::new());
    let mut columns = &all[..];
    while !columns.is_empty() {
        let is_first = columns.len() == all.len();
        let room = WIDTH.saturating_sub(name_width + if is_first { STANDING } else { 0 });
        let (now, later) = columns.split_at(fitting(columns, room));
        let shown =
            rows.iter().filter(|row| is_first || now.iter().any(|(name, _)| row.figure(name).is_some()));
        let mut table =
            table::lay_out(head(&rows[0], now, is_first), shown.map(|row| line(row, now, is_first)));
        for (number, column) in table.column_iter_mut().enumerate().skip(1) {
            column.set_padding((1, 0));
            if number > now.len() + 1 {
                column.set_cell_alignment(CellAlignment::Left);
            }
        }
        let _ = writeln!(text, "{}", table.trim_fmt());
        columns = later;
    }
    judge(rows, &mut text);
    text
}

/// How many of the columns fit into so much room; one at least.
fn fitting(columns: &[(&'static str, usize)], room: usize) -> usize {
    let ends = columns.iter().scan(0, |end, (_, width)| {
        *end += width + 1;
        Some(*end)
    });
    ends.take_while(|end| *end <= room).count().max(1)
}

fn line(row: &Row, columns: &[(&'static str, usize)], is_first: bool) -> Vec<String> {
    let cell = |figure: Option<&Figure>| {
        figure.map_or_else(|| NOTHING.to_owned(), |figure| cell(row.measure, figure.median()))
    };
    let mut line = vec![row.label()];
    line.extend(columns.iter().map(|(name, _)| cell(row.figure(name))));
    if is_first {
        line.push(
            row.standing.as_ref().map_or_else(String::new, |standing| units::three_digits(standing.ratio)),
        );
        line.push(marks(&row.verdicts));
    }
    line
}

/// The names of all entrants, in the order in which they are listed, and how wide their columns are.
pub(super) fn columns(rows: &[Row]) -> Vec<(&'static str, usize)> {
    let all = rows.iter().flat_map(|row| row.figures.iter().map(|figure| (figure.place, figure.entrant)));
    let mut all: Vec<(usize, &'static str)> = all.collect();
    all.sort_unstable();
    all.dedup();
    let width = |name: &'static str| {
        let cells = rows.iter().filter_map(|row| Some(cell(row.measure, row.figure(name)?.median())));
        let words = lines(name).map(str::to_owned);
        cells.chain(words).map(|text| text.chars().count()).max().unwrap_or(0).max(NARROWEST)
    };
    all.into_iter().map(|(_, name)| (name, width(name))).collect()
}

/// Two lines, as the names of most entrants have two words.
fn head(row: &Row, columns: &[(&'static str, usize)], is_first: bool) -> Vec<String> {
    let s = if row.workers == 1 { "" } else { "s" };
    let mut head = vec![match is_first {
        true => format!("{}, {} worker{s}\nns, unless said", row.subject, row.workers),
        false => "\nthe others".to_owned(),
    }];
    head.extend(columns.iter().map(|(name, width)| {
        let [first, second] = lines(name);
        format!("{first:>width$}\n{second:>width$}")
    }));
    if is_first {
        head.extend(["fibra to\nthe best".to_owned(), String::new()]);
    }
    head
}

fn lines(name: &str) -> [&str; 2] {
    let gap = name.find([' ', '_']);
    gap.map_or(["", name], |gap| [&name[..gap], name[gap..].trim_start_matches(' ')])
}

fn marks(verdicts: &[Verdict]) -> String {
    verdicts.iter().map(|verdict| if verdict.is_met() { '✓' } else { '✗' }).collect()
}

/// Which targets are missed, and how many are met.
fn judge(rows: &[Row], text: &mut String) {
    let all = || rows.iter().flat_map(|row| row.verdicts.iter().map(move |verdict| (row, verdict)));
    let (met, count) = (all().filter(|(_, verdict)| verdict.is_met()).count(), all().count());
    if count > 0 {
        let _ = writeln!(text, "✓ {met} of {count} targets met");
    }
    for (row, verdict) in all().filter(|(_, verdict)| !verdict.is_met()) {
        let _ = writeln!(text, "✗ {}: {}", row.label(), sentence(row.measure, verdict));
    }
    for (row, target) in rows.iter().flat_map(|row| row.unjudged.iter().map(move |target| (row, target))) {
        let (entrant, most) = (target.entrant, target.most);
        let why = "not judged, since nothing was asked with one worker";
        let _ = writeln!(text, "? {}: {entrant} to one worker, meant at most {most}: {why}", row.label());
    }
}

/// Describes a target and the figure reached.
pub(super) fn sentence(measure: Measure, verdict: &Verdict) -> String {
    let Verdict { entrant, most, of, reached } = verdict;
    match of {
        Some(of) => format!("{entrant} {} of {of}, meant at most {most}", units::three_digits(*reached)),
        None => {
            format!("{entrant} {}, meant at most {}", with_unit(measure, *reached), with_unit(measure, *most))
        }
    }
}

/// A figure as short as it goes; times are in nanoseconds up to six digits.
pub(super) fn cell(measure: Measure, figure: f64) -> String {
    match measure {
        Measure::Shares => units::three_digits(figure),
        Measure::Memory => units::count(figure.round() as u64),
        Measure::Latency | Measure::LatencyTail | Measure::Lateness | Measure::LatenessTail => {
            units::nanos(figure.round() as u64)
        }
        Measure::Time | Measure::Cpu => match figure {
            figure if figure < 99.95 => units::three_digits(figure),
            figure if figure < 999_999.5 => units::count(figure.round() as u64),
            figure => units::nanos(figure as u64),
        },
    }
}

/// A figure with its unit.
pub(super) fn with_unit(measure: Measure, figure: f64) -> String {
    match measure {
        Measure::Time | Measure::Cpu if figure < 999_999.5 => format!("{} ns", cell(measure, figure)),
        Measure::Memory => format!("{} bytes", cell(measure, figure)),
        _ => cell(measure, figure),
    }
}

#[cfg(test)]
mod tests;
