//! Line charts, as a text that has everything a browser needs.

use askama::Template;
use std::borrow::Borrow;

/// The drawing's measures, in its own units.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    /// Of the whole drawing.
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Room beside the plot: for the numbers on the left, for the names of the lines on the right, and below.
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    /// Lines are named at their right ends; otherwise a legend outside the drawing has to do.
    pub(crate) names: bool,
    /// Draws every which-th label of the x axis.
    pub(crate) thin: usize,
}

impl Frame {
    fn x(&self, share: impl Borrow<f64>) -> f64 {
        tenths(self.left + share.borrow() * (self.width - self.left - self.right))
    }

    fn y(&self, share: impl Borrow<f64>) -> f64 {
        tenths(self.height - self.bottom - share.borrow() * (self.height - self.top - self.bottom))
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let places: Vec<_> = points.iter().map(|&(x, y)| format!("{} {}", self.x(x), self.y(y))).collect();
        format!("M{}", places.join("L"))
    }
}

/// A place in a drawing, as precise as one sees.
pub(crate) fn tenths(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

/// A mark on an axis, at a share of its length.
#[derive(Clone)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    /// Empty for a minor one, which is a fainter line alone.
    pub(crate) label: String,
}

/// An axis: its title, with the unit, and its marks.
pub(crate) struct Axis {
    pub(crate) title: String,
    pub(crate) ticks: Vec<Tick>,
}

/// A line, in shares of both axes. Its number chooses colour and dashes in the style sheet.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) number: usize,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A chart that can be drawn in any frame.
pub(crate) struct Chart {
    /// The text alternative of the chart.
    pub(crate) description: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
}

/// A chart in a frame.
#[derive(Template)]
#[template(path = "chart.svg")]
struct Drawing<'a> {
    chart: &'a Chart,
    frame: Frame,
    class: &'a str,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// The lines that are named, and where.
    names: Vec<(&'a Line, f64, f64)>,
}

impl Chart {
    /// Draws the chart; `class` tells drawings apart in the style sheet and the script.
    pub(crate) fn draw(&self, frame: Frame, class: &str) -> String {
        let (left, right, top, bottom) = (frame.x(0.0), frame.x(1.0), frame.y(1.0), frame.y(0.0));
        let names = if frame.names { self.names(&frame) } else { Vec::new() };
        let drawing = Drawing { chart: self, frame, class, left, right, top, bottom, names };
        drawing.render().expect("a text has room")
    }

    /// The places of the lines' names: at their ends, moved apart where they would cover each other.
    fn names(&self, frame: &Frame) -> Vec<(&Line, f64, f64)> {
        let ends = self.lines.iter().filter_map(|line| Some((line, *line.points.last()?)));
        let mut ends: Vec<_> =
            ends.map(|(line, (x, y))| (line, frame.x(x) + 9.0, frame.y(y) + 4.0)).collect();
        ends.sort_by(|a, b| a.2.total_cmp(&b.2));
        let mut free = frame.top;
        for (_, _, y) in &mut ends {
            *y = y.max(free);
            free = *y + 17.0;
        }
        ends
    }
}

impl Line {
    /// The points that are drawn as such: where there are few of them all, for each was measured by itself; else the last.
    fn marked(&self) -> &[(f64, f64)] {
        const FEW: usize = 16;
        let count = self.points.len();
        if count <= FEW { &self.points } else { &self.points[count - 1..] }
    }

    /// As much of a name as the margin holds; the legend has the whole.
    fn short_name(&self) -> String {
        const ROOM: usize = 16;
        match self.name.char_indices().nth(ROOM) {
            Some((end, _)) => format!("{}…", &self.name[..end]),
            None => self.name.clone(),
        }
    }
}

impl Tick {
    fn class(&self) -> &'static str {
        if self.label.is_empty() { "grid minor" } else { "grid" }
    }
}

/// A logarithmic scale over values of at least 1.
#[derive(Clone, Copy)]
pub(crate) struct LogScale {
    low: f64,
    high: f64,
}

impl LogScale {
    /// Covers `low` to `high`, both widened to a 1, 2 or 5 times a power of ten.
    pub(crate) fn covering(low: f64, high: f64) -> Self {
        let low = rounds().take_while(|&round| round <= low.max(1.0)).last().unwrap_or(1.0);
        let high = rounds().find(|&round| round >= high && round > low).unwrap_or(low * 10.0);
        Self { low: low.log10(), high: high.log10() }
    }

    /// Where a value stands, as a share of the scale.
    pub(crate) fn share(self, value: f64) -> f64 {
        ((value.max(1.0).log10() - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// The marks: every 1, 2 and 5, with labels as far as there is room.
    pub(crate) fn ticks(self, label: impl Fn(f64) -> String) -> Vec<Tick> {
        let crowded = self.high - self.low > 3.1;
        let inside = rounds().filter(|round| (self.low - 1e-9..=self.high + 1e-9).contains(&round.log10()));
        let marks = inside.take_while(|round| round.log10() <= self.high + 1e-9);
        let tick = |round: f64| {
            let is_power = (round.log10() - round.log10().round()).abs() < 1e-9;
            let label = if crowded && !is_power { String::new() } else { label(round) };
            Tick { at: self.share(round), label }
        };
        marks.map(tick).collect()
    }
}

/// 1, 2, 5, 10, 20, 50 and on, up to the largest power of ten that is of any use here.
fn rounds() -> impl Iterator<Item = f64> {
    (0..16).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)))
}

/// The marks of a linear scale from zero, and its upper end.
pub(crate) fn linear_ticks(high: f64, label: impl Fn(f64) -> String) -> (f64, Vec<Tick>) {
    let step = rounds().find(|step| high / step <= 5.0).unwrap_or(high / 5.0).max(1.0);
    let steps = (high / step).ceil().max(1.0);
    let tick = |number: u32| Tick { at: f64::from(number) / steps, label: label(f64::from(number) * step) };
    (steps * step, (0..=steps as u32).map(tick).collect())
}

#[cfg(test)]
mod tests;
