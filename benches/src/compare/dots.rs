//! The chart of a subject: a line for each question, on which each entrant is a dot, as far to the right as it needs times
//! what fibra needs.

use askama::Template;

use super::figures::{Figure, Row};
use super::question::Measure;
use super::table::{ratio, with_unit};
use crate::report::chart::{LogScale, tenths};

/// The drawing's measures, in its own units.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 285.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 30.0;
const LINE: f64 = 27.0;

/// Proportions are drawn up to these, so that a distant entrant does not push all others together.
const LEAST: f64 = 0.05;
const MOST: f64 = 100.0;

/// The scale begins at 1, proportions do not.
const UNIT: f64 = 1e3;

/// Where the names of the lines end.
const NAMES: f64 = LEFT - 14.0;

#[derive(Template)]
#[template(path = "dots.svg")]
struct Dots {
    width: f64,
    /// Of a line.
    height: f64,
    top: f64,
    bottom: f64,
    names: f64,
    one: f64,
    ticks: Vec<(f64, String)>,
    lines: Vec<DotRow>,
}

/// A line of the chart.
struct DotRow {
    top: f64,
    label: String,
    dots: Vec<Dot>,
}

/// An entrant.
struct Dot {
    title: String,
    hue: usize,
    lower: f64,
    median: f64,
    upper: f64,
    radius: f64,
}

/// Draws the rows that have proportions. Entrants have the colours of their `numbers`.
pub(super) fn draw(rows: &[Row], numbers: impl Fn(&str) -> usize) -> String {
    let rows: Vec<(&Row, f64)> = rows.iter().filter_map(|row| Some((row, base(row)?))).collect();
    let all =
        rows.iter().flat_map(|(row, base)| row.figures.iter().map(|figure| share(figure.median(), *base)));
    let (low, high) = all.fold((0.8_f64, 2.0_f64), |(low, high), share| (low.min(share), high.max(share)));
    let scale = LogScale::covering(low * UNIT, high * UNIT);
    let place = |at: f64| tenths(LEFT + at * (WIDTH - LEFT - RIGHT));
    let x = |proportion: f64| place(scale.share(proportion * UNIT));
    let line = |(number, (row, base)): (usize, &(&Row, f64))| {
        let dot = |figure: &Figure| {
            let [lower, median, upper] = figure.quartiles.map(|quartile| x(share(quartile, *base)));
            let radius = if figure.entrant == "fibra" { 6.5 } else { 5.0 };
            let title = title(row.measure, figure, *base);
            Dot { title, hue: numbers(figure.entrant), lower, median, upper, radius }
        };
        // fibra last, so that it lies above the others.
        let dots = row.figures.iter().rev().map(dot).collect();
        DotRow { top: TOP + LINE * number as f64, label: row.label(), dots }
    };
    let ticks = scale.ticks(|value| format!("{}", value / UNIT));
    let drawing = Dots {
        width: WIDTH,
        height: LINE,
        top: TOP,
        bottom: TOP + LINE * rows.len() as f64,
        names: NAMES,
        one: x(1.0),
        ticks: ticks.into_iter().map(|tick| (place(tick.at), tick.label)).collect(),
        lines: rows.iter().enumerate().map(line).collect(),
    };
    drawing.render().expect("a text has room")
}

impl DotRow {
    fn middle(&self) -> f64 {
        self.top + LINE / 2.0
    }
}

/// What is 1: fibra's median, or the first entrant's where fibra was not asked. Shares are figures of their own, in no
/// proportion to each other.
fn base(row: &Row) -> Option<f64> {
    let base = row.figure("fibra").or(row.figures.first())?.median();
    (row.measure != Measure::Shares && base > 0.0).then_some(base)
}

fn share(figure: f64, base: f64) -> f64 {
    (figure / base).clamp(LEAST, MOST)
}

fn title(measure: Measure, figure: &Figure, base: f64) -> String {
    let [lower, median, upper] = figure.quartiles.map(|quartile| with_unit(measure, quartile));
    let times = ratio(figure.median() / base);
    format!("{}: {median}, half of the samples {lower} to {upper}; {times} times fibra", figure.entrant)
}
