//! Line charts, drawn by plotters.

use plotters::coord::combinators::{LogCoord, WithKeyPoints};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::error::Error;

/// Width of a drawing, in its own units. A window scales it.
pub(crate) const WIDTH: u32 = 960;

/// Where colours of the style sheet stand in a drawing: plotters knows colours by value only.
const HUE: RGBColor = RGBColor(255, 0, 0);
const INK: RGBColor = RGBColor(255, 1, 0);
pub(crate) const RULE: RGBColor = RGBColor(255, 1, 1);
const HUES: u8 = 32;

/// Charts with few points on a line mark each of them.
const FEW: usize = 16;

/// An axis: its title with the unit, its range, and the labels of its marks.
pub(crate) struct Axis<'a, R> {
    pub(crate) title: &'a str,
    pub(crate) range: R,
    pub(crate) label: &'a dyn Fn(&f64) -> String,
}

/// A line. Its number chooses colour and dashes in the style sheet.
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A chart, and its hints for the mouse.
pub(crate) struct Drawing {
    pub(crate) svg: String,
    pub(crate) height: u32,
    pub(crate) hints: Vec<Hint>,
}

/// A vertical strip of a chart with a text.
pub(crate) struct Hint {
    pub(crate) left: i32,
    pub(crate) width: i32,
    pub(crate) text: String,
}

/// Draws lines over two axes. Hints are texts for values of the x axis.
pub(crate) fn draw<X, Y>(
    height: u32,
    x: Axis<'_, X>,
    y: Axis<'_, Y>,
    lines: &[Line],
    hints: Vec<(f64, String)>,
) -> Drawing
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut drawn = Vec::new();
    let svg = svg(height, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin_top(12)
            .margin_right(24)
            .x_label_area_size(48)
            .y_label_area_size(92)
            .build_cartesian_2d(x.range, y.range)?;
        chart
            .configure_mesh()
            .axis_style(INK)
            .bold_line_style(RULE)
            .light_line_style(TRANSPARENT)
            .label_style(text(16))
            .axis_desc_style(text(16))
            .x_desc(x.title)
            .y_desc(y.title)
            .x_label_formatter(x.label)
            .y_label_formatter(y.label)
            .draw()?;
        for line in lines {
            let style = hue(line.number);
            chart.draw_series(LineSeries::new(line.points.iter().copied(), style.stroke_width(3)))?;
            let marked = if line.points.len() > FEW { &[] } else { &line.points[..] };
            chart.draw_series(marked.iter().map(|&point| Circle::new(point, 4, style.filled())))?;
        }
        let area = chart.plotting_area();
        let (range, floor) = (area.get_pixel_range().0, area.get_y_range().start);
        let at = |x: f64| area.map_coordinate(&(x, floor)).0;
        let places: Vec<i32> = hints.iter().map(|(x, _)| at(*x)).collect();
        let edges = places.windows(2).map(|pair| i32::midpoint(pair[0], pair[1]));
        let edges: Vec<i32> = [range.start].into_iter().chain(edges).chain([range.end]).collect();
        drawn = edges
            .windows(2)
            .zip(hints)
            .map(|(edge, (_, text))| Hint { left: edge[0], width: edge[1] - edge[0], text })
            .collect();
        Ok(())
    });
    Drawing { svg, height, hints: drawn }
}

/// A drawing area of plotters over a text.
pub(crate) type Root<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws, with the colours of the style sheet.
pub(crate) fn svg(height: u32, draw: impl FnOnce(&Root<'_>) -> Result<(), Box<dyn Error>>) -> String {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    draw(&root).and_then(|()| Ok(root.present()?)).expect("a text has room");
    drop(root);
    // A page needs no name of the language, which has the form of an address.
    let svg = svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", "");
    let coloured = |svg: String, (color, name): (RGBColor, String)| {
        let RGBColor(red, green, blue) = color;
        svg.replace(&format!("\"#{red:02X}{green:02X}{blue:02X}\""), &format!("\"var(--{name})\""))
    };
    let names = [(INK, "soft".to_owned()), (RULE, "rule".to_owned())];
    let hues = (0..HUES).map(|number| (hue(number.into()), format!("s{number}")));
    names.into_iter().chain(hues).fold(svg, coloured)
}

/// The colour of this number in the style sheet.
pub(crate) fn hue(number: usize) -> RGBColor {
    RGBColor(HUE.0, HUE.1, 2 + number as u8)
}

/// Text of this size.
pub(crate) fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// A logarithmic range that covers positive values, with marks at 1, 2 and 5 times each power of ten.
pub(crate) fn log_range(low: f64, high: f64) -> WithKeyPoints<LogCoord<f64>> {
    let low = low.max(f64::MIN_POSITIVE);
    let range = low..high.max(low * 2.0);
    let power = low.log10().floor() as i32;
    let marks = (power..).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
    let marks = marks.skip_while(|mark| *mark < low).take_while(|mark| *mark <= range.end).collect();
    range.log_scale().with_key_points(marks)
}

/// The logarithmic range of the lines' heights.
pub(crate) fn heights(lines: &[Line]) -> WithKeyPoints<LogCoord<f64>> {
    let all = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    log_range(all().fold(f64::MAX, f64::min) * 0.9, all().fold(1.0, f64::max) * 1.1)
}

#[cfg(test)]
mod tests;
