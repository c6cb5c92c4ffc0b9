//! The tables for the terminal, which fit into 120 columns.

use std::fmt::Write as _;

use super::figures::{Figure, Row, Verdict};
use super::question::Measure;
use crate::report::units;

/// How narrow a column of figures may be.
const NARROWEST: usize = 7;

/// What stands where nobody was asked.
const NOTHING: &str = "·";

/// The rows of one subject, with the entrants that appear in them as columns.
pub(super) fn render(rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let columns = columns(rows);
    let name_width = rows.iter().map(|row| row.label().chars().count()).max().unwrap_or(0).max(24);
    let mut text = String::new();
    head(first, &columns, name_width, &mut text);
    for row in rows {
        let _ = write!(text, "{:<name_width$}", row.label());
        for (name, width) in &columns {
            let cell = row
                .figure(name)
                .map_or_else(|| NOTHING.to_owned(), |figure| cell(row.measure, figure.median()));
            let _ = write!(text, " {cell:>width$}");
        }
        let ratio = row.standing.as_ref().map_or_else(String::new, |standing| ratio(standing.ratio));
        let _ = writeln!(text, " {ratio:>7} {}", marks(&row.verdicts));
    }
    judge(rows, &mut text);
    text
}

/// The names of all entrants, in the order in which they are listed, and how wide their columns are.
pub(super) fn columns(rows: &[Row]) -> Vec<(&'static str, usize)> {
    let mut columns: Vec<(&'static str, usize)> = Vec::new();
    for row in rows {
        let mut place = 0;
        for Figure { entrant, .. } in &row.figures {
            match columns.iter().position(|(name, _)| name == entrant) {
                Some(known) => place = known + 1,
                None => {
                    columns.insert(place, (entrant, 0));
                    place += 1;
                }
            }
        }
    }
    for (name, width) in &mut columns {
        let cells = rows.iter().filter_map(|row| Some((row.measure, row.figure(name)?.median())));
        let widest = cells.map(|(measure, median)| cell(measure, median).chars().count()).max().unwrap_or(0);
        *width = lines(name)
            .map(|line| line.chars().count())
            .into_iter()
            .max()
            .unwrap_or(0)
            .max(widest)
            .max(NARROWEST);
    }
    columns
}

/// Two lines, as the names of most entrants have two words, and a rule.
fn head(row: &Row, columns: &[(&'static str, usize)], name_width: usize, text: &mut String) {
    let s = if row.workers == 1 { "" } else { "s" };
    let titles = [format!("{}, {} worker{s}", row.subject, row.workers), "ns, unless said".to_owned()];
    let ends = ["fibra to", "the best"];
    for (line, (title, end)) in titles.iter().zip(ends).enumerate() {
        let _ = write!(text, "{title:<name_width$}");
        for (name, width) in columns {
            let _ = write!(text, " {:>width$}", lines(name)[line]);
        }
        let _ = writeln!(text, " {end}");
    }
    let length = name_width + columns.iter().map(|(_, width)| width + 1).sum::<usize>() + 10;
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
    if count == 0 {
        return;
    }
    let _ = writeln!(text, "✓ {met} of {count} targets met");
    for (row, verdict) in all().filter(|(_, verdict)| !verdict.is_met()) {
        let _ = writeln!(text, "✗ {}: {}", row.label(), sentence(row.measure, verdict));
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
        Measure::Lateness | Measure::LatenessTail => units::nanos(figure.round() as u64),
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
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_or_all_that_count() {
        let cells = [4.5, 45.67, 456.7, 45_678.0, 45_678_900.0].map(|figure| cell(Measure::Time, figure));
        assert_eq!(cells, ["4.50", "45.7", "457", "45,678", "45.7 ms"]);
        assert_eq!(cell(Measure::Memory, 4_570.4), "4,570");
    }

    #[test]
    fn names_have_two_lines() {
        assert_eq!(lines("tokio multi"), ["tokio", "multi"]);
        assert_eq!(lines("parking_lot"), ["parking", "_lot"]);
        assert_eq!(lines("may"), ["", "may"]);
    }
}
