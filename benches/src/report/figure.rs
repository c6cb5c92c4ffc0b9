//! A figure of the page: charts with a common legend.

use super::Row;
use super::chart::{Chart, Frame};

/// The page's drawings exist twice, for a wide and for a narrow window; the style sheet shows one.
const WIDE: Frame = Frame {
    width: 960.0,
    height: 440.0,
    left: 70.0,
    right: 130.0,
    top: 30.0,
    bottom: 52.0,
    names: true,
    thin: 1,
};
const NARROW: Frame = Frame {
    width: 400.0,
    height: 360.0,
    left: 58.0,
    right: 14.0,
    top: 30.0,
    bottom: 50.0,
    names: false,
    thin: 1,
};

pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) about: String,
    /// Names, each with the number of its colour.
    pub(super) legend: Vec<(String, usize)>,
    pub(super) panels: Vec<Panel>,
}

/// A chart, drawn for a wide and for a narrow window.
pub(super) struct Panel {
    pub(super) heading: &'static str,
    /// Data of the chart for a reader that points at it; empty where there is none.
    pub(super) data: String,
    pub(super) wide: String,
    pub(super) narrow: String,
}

/// Which frames a chart has.
#[derive(Clone, Copy)]
pub(super) enum Format {
    Tall,
    Low,
    /// Low, with long labels on the x axis.
    LowLabelled,
}

impl Panel {
    pub(super) fn new(heading: &'static str, chart: &Chart, data: String, format: Format) -> Self {
        let low = Frame { height: 280.0, ..NARROW };
        let (height, narrow) = match format {
            Format::Tall => (WIDE.height, NARROW),
            Format::Low => (300.0, low),
            Format::LowLabelled => (300.0, Frame { right: 30.0, thin: 2, ..low }),
        };
        let wide = chart.draw(Frame { height, ..WIDE }, "wide");
        Panel { heading, data, wide, narrow: chart.draw(narrow, "narrow") }
    }
}

pub(super) fn legend(rows: &[&Row]) -> Vec<(String, usize)> {
    rows.iter().map(|row| (row.name.clone(), row.hue())).collect()
}
