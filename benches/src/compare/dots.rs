//! The chart of a subject: a line for each question, on which each entrant is a dot, as far to the right as it needs times
//! what fibra needs.

use std::fmt::Write as _;

use super::figures::{Figure, Row};
use super::question::Measure;
use super::table::{ratio, with_unit};
use crate::report::document::escape;
use crate::report::svg::Log;

/// The drawing's measures, in its own units.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 285.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 30.0;
const LINE: f64 = 27.0;

/// Proportions are drawn up to these, so that one that is far away does not push all others together.
const LEAST: f64 = 0.05;
const MOST: f64 = 100.0;

/// The scale begins at 1, proportions do not.
const UNIT: f64 = 1e3;

/// A line of the chart.
struct Line<'a> {
    row: &'a Row,
    /// What is 1: fibra's median, or whoever comes first where fibra was not asked.
    base: f64,
}

/// Draws the rows that have proportions. Entrants have the colours of their `numbers`.
pub(super) fn draw(rows: &[&Row], numbers: impl Fn(&str) -> usize) -> String {
    let lines: Vec<Line<'_>> = rows.iter().filter_map(|row| Line::of(row)).collect();
    let proportions =
        || lines.iter().flat_map(|line| line.row.figures.iter().map(|figure| line.share(figure.median())));
    let (low, high) = (proportions().fold(0.8, f64::min), proportions().fold(2.0, f64::max));
    let scale = Log::covering(low * UNIT, high * UNIT);
    let x = |proportion: f64| LEFT + scale.share(proportion * UNIT) * (WIDTH - LEFT - RIGHT);
    let bottom = TOP + LINE * lines.len() as f64;
    let mut svg = format!(
        "<svg class=\"dots\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"Proportions to fibra\">\n",
        bottom + 8.0
    );
    stripes(lines.len(), &mut svg);
    for tick in scale.ticks(|value| format!("{}", value / UNIT)) {
        let x = LEFT + tick.at * (WIDTH - LEFT - RIGHT);
        let class = if tick.label.is_empty() { "grid minor" } else { "grid" };
        let _ = writeln!(svg, "<path class=\"{class}\" d=\"M{x:.1} {TOP:.1}V{bottom:.1}\"/>");
        let label = escape(&tick.label);
        let _ = writeln!(
            svg,
            "<text class=\"tick-label\" x=\"{x:.1}\" y=\"20\" text-anchor=\"middle\">{label}</text>"
        );
    }
    let _ = writeln!(svg, "<path class=\"one\" d=\"M{0:.1} {TOP:.1}V{bottom:.1}\"/>", x(1.0));
    for (number, line) in lines.iter().enumerate() {
        let y = TOP + LINE * (number as f64 + 0.5);
        line.draw(y, &x, &numbers, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

fn stripes(lines: usize, svg: &mut String) {
    for number in (0..lines).step_by(2) {
        let y = TOP + LINE * number as f64;
        let _ = writeln!(
            svg,
            "<rect class=\"stripe\" x=\"0\" y=\"{y:.1}\" width=\"{WIDTH}\" height=\"{LINE}\"/>"
        );
    }
}

impl<'a> Line<'a> {
    /// Shares are figures of their own, in no proportion to each other.
    fn of(row: &'a Row) -> Option<Self> {
        let base = row.figure("fibra").or(row.figures.first())?.median();
        (row.measure != Measure::Shares && base > 0.0).then_some(Line { row, base })
    }

    fn share(&self, figure: f64) -> f64 {
        (figure / self.base).clamp(LEAST, MOST)
    }

    fn draw(&self, y: f64, x: &impl Fn(f64) -> f64, numbers: &impl Fn(&str) -> usize, svg: &mut String) {
        let label = escape(&self.row.label());
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 14.0,
            y + 4.3
        );
        // fibra last, so that it lies above the others.
        for figure in self.row.figures.iter().rev() {
            let [lower, median, upper] = figure.quartiles.map(|figure| x(self.share(figure)));
            let (hue, title) = (numbers(figure.entrant), escape(&self.title(figure)));
            let radius = if figure.entrant == "fibra" { 6.5 } else { 5.0 };
            let _ = writeln!(
                svg,
                "<g><title>{title}</title><path class=\"range\" stroke=\"var(--c{hue})\" d=\"M{lower:.1} {y:.1}H{upper:.1}\"/>\
                 <circle cx=\"{median:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"var(--c{hue})\"/></g>"
            );
        }
    }

    fn title(&self, figure: &Figure) -> String {
        let [lower, median, upper] = figure.quartiles.map(|quartile| with_unit(self.row.measure, quartile));
        let times = ratio(figure.median() / self.base);
        format!("{}: {median}, half of the samples {lower} to {upper}; {times} times fibra", figure.entrant)
    }
}
