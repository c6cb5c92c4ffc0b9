//! The tables for the terminal, which fit into 120 columns.

use std::fmt::Write as _;

use super::figures::{Row, Verdict};
use super::question::Measure;
use crate::report::units;

/// How wide a table may be, how narrow its names, and what the ratio and the marks need.
const WIDTH: usize = 120;
const NAMES: usize = 24;
const STANDING: usize = 12;

/// How narrow a column of figures may be.
const NARROWEST: usize = 7;

/// What stands where nobody was asked.
const NOTHING: &str = "·";

/// The rows of one subject, with the entrants that appear in them as columns. Those for whom there is no room come in a second
/// table.
pub(super) fn render(rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let name_width = rows.iter().map(|row| row.label().chars().count()).max().unwrap_or(0).max(NAMES);
    let all = columns(rows);
    let mut columns = &all[..];
    let mut text = String::new();
    let mut is_first = true;
    while !columns.is_empty() {
        let room = WIDTH.saturating_sub(name_width + if is_first { STANDING } else { 0 });
        let (now, later) = columns.split_at(fitting(columns, room));
        head(first, now, name_width, is_first, &mut text);
        rows.iter().for_each(|row| line(row, now, name_width, is_first, &mut text));
        (columns, is_first) = (later, false);
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

fn line(row: &Row, columns: &[(&'static str, usize)], name_width: usize, is_first: bool, text: &mut String) {
    if !is_first && columns.iter().all(|(name, _)| row.figure(name).is_none()) {
        return;
    }
    let _ = write!(text, "{:<name_width$}", row.label());
    for (name, width) in columns {
        let figure = row.figure(name);
        let cell = figure.map_or_else(|| NOTHING.to_owned(), |figure| cell(row.measure, figure.median()));
        let _ = write!(text, " {cell:>width$}");
    }
    if is_first {
        let ratio = row.standing.as_ref().map_or_else(String::new, |standing| ratio(standing.ratio));
        let _ = write!(text, " {ratio:>8} {}", marks(&row.verdicts));
    }
    text.push('\n');
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

/// Two lines, as the names of most entrants have two words, and a rule.
fn head(row: &Row, columns: &[(&'static str, usize)], name_width: usize, is_first: bool, text: &mut String) {
    let s = if row.workers == 1 { "" } else { "s" };
    let titles = match is_first {
        true => [format!("{}, {} worker{s}", row.subject, row.workers), "ns, unless said".to_owned()],
        false => [String::new(), "the others".to_owned()],
    };
    let ends = if is_first { ["fibra to", "the best"] } else { [""; 2] };
    for (line, (title, end)) in titles.iter().zip(ends).enumerate() {
        let _ = write!(text, "{title:<name_width$}");
        for (name, width) in columns {
            let _ = write!(text, " {:>width$}", lines(name)[line]);
        }
        let _ = writeln!(text, "{}{end}", if is_first { " " } else { "" });
    }
    let standing = if is_first { STANDING } else { 0 };
    let length = name_width + columns.iter().map(|(_, width)| width + 1).sum::<usize>() + standing;
    let _ = writeln!(text, "{}", "─".repeat(length));
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
        let (who, most) = (target.who, target.most);
        let why = "not judged, since nothing was asked with one worker";
        let _ = writeln!(text, "? {}: {who} to one worker, meant at most {most}: {why}", row.label());
    }
}

/// What was to be reached, and what was.
pub(super) fn sentence(measure: Measure, verdict: &Verdict) -> String {
    let Verdict { who, most, of, reached } = verdict;
    match of {
        Some(of) => format!("{who} {} of {of}, meant at most {most}", ratio(*reached)),
        None => {
            format!("{who} {}, meant at most {}", with_unit(measure, *reached), with_unit(measure, *most))
        }
    }
}

/// A ratio with three digits.
pub(super) fn ratio(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 9.995 => format!("{ratio:.2}"),
        ratio if ratio < 99.95 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

/// A figure as short as it goes; times are in nanoseconds up to six digits.
pub(super) fn cell(measure: Measure, figure: f64) -> String {
    match measure {
        Measure::Shares => ratio(figure),
        Measure::Memory => units::count(figure.round() as u64),
        Measure::Latency | Measure::LatencyTail | Measure::Lateness | Measure::LatenessTail => {
            units::nanos(figure.round() as u64)
        }
        Measure::Time | Measure::Cpu => match figure {
            figure if figure < 9.995 => format!("{figure:.2}"),
            figure if figure < 99.95 => format!("{figure:.1}"),
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
