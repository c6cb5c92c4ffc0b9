//! The chart of a subject: a line for each question, on which each entrant is a dot, as far to the right as
//! it needs times what fibra needs.

use plotters::prelude::*;

use super::figures::Row;
use super::question::Measure;
use crate::report::chart::{RULE, hue, log_range, svg, text};

/// Heights of a line and of the axis, and the width of the names of lines, in units of the drawing.
const LINE: u32 = 27;
const AXIS: u32 = 30;
const NAMES: u32 = 285;

/// Proportions are drawn up to these, so that a distant entrant does not push all others together.
const LEAST: f64 = 0.05;
const MOST: f64 = 100.0;

/// Draws the rows that have proportions. Entrants have the colours of their `numbers`.
pub(super) fn draw(rows: &[Row], numbers: impl Fn(&str) -> usize) -> String {
    let rows: Vec<(&Row, f64)> = rows.iter().filter_map(|row| Some((row, base(row)?))).collect();
    let all =
        rows.iter().flat_map(|(row, base)| row.figures.iter().map(|figure| share(figure.median(), *base)));
    let (low, high) = all.fold((0.8_f64, 2.0_f64), |(low, high), share| (low.min(share), high.max(share)));
    let lines = rows.len() as i32;
    svg(AXIS + LINE * rows.len() as u32, |root| {
        // The first row is the highest.
        let (x, y) = (log_range(low * 0.9, high * 1.1), (0..(lines - 1).max(0)).into_segmented());
        let mut chart = ChartBuilder::on(root)
            .margin_right(24)
            .set_label_area_size(LabelAreaPosition::Top, AXIS)
            .set_label_area_size(LabelAreaPosition::Left, NAMES)
            .build_cartesian_2d(x, y)?;
        let label = |place: &SegmentValue<i32>| match place {
            SegmentValue::CenterOf(line) => {
                rows.get((lines - 1 - line) as usize).map_or_else(String::new, |(row, _)| row.label())
            }
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .y_labels(rows.len())
            .y_label_formatter(&label)
            .x_label_formatter(&|proportion| proportion.to_string())
            .bold_line_style(RULE)
            .light_line_style(TRANSPARENT)
            .axis_style(TRANSPARENT)
            .label_style(text(16))
            .draw()?;
        let ends = [SegmentValue::Exact(0), SegmentValue::Last];
        chart.draw_series([PathElement::new(ends.map(|end| (1.0, end)), hue(0).stroke_width(2))])?;
        for (number, (row, base)) in (0..).zip(&rows) {
            let middle = SegmentValue::CenterOf(lines - 1 - number);
            // fibra last, so that it lies above the others.
            for figure in row.figures.iter().rev() {
                let [lower, median, upper] = figure.quartiles.map(|quartile| share(quartile, *base));
                let (colour, radius) =
                    (hue(numbers(figure.entrant)), if figure.entrant == "fibra" { 7 } else { 5 });
                let range = [lower, upper].map(|end| (end, middle.clone()));
                chart.draw_series([PathElement::new(range, colour.mix(0.5).stroke_width(2))])?;
                chart.draw_series([Circle::new((median, middle.clone()), radius, colour.filled())])?;
            }
        }
        Ok(())
    })
}

/// Returns the unit: fibra's median, or the first entrant's where fibra was not asked.
///
/// Shares have no unit: they are in no proportion to each other.
fn base(row: &Row) -> Option<f64> {
    let base = row.figure("fibra").or(row.figures.first())?.median();
    (row.measure != Measure::Shares && base > 0.0).then_some(base)
}

fn share(figure: f64, base: f64) -> f64 {
    (figure / base).clamp(LEAST, MOST)
}
