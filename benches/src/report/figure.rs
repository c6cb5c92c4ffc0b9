//! A figure of the page: charts with a common legend.

use super::Row;
use super::chart::Drawing;

pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) about: String,
    /// Names, each with the number of its colour.
    pub(super) legend: Vec<(String, usize)>,
    /// Charts with their headings.
    pub(super) panels: Vec<(&'static str, Drawing)>,
}

pub(super) fn legend(rows: &[&Row]) -> Vec<(String, usize)> {
    rows.iter().map(|row| (row.name.clone(), row.hue())).collect()
}
