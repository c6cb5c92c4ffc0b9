//! The latencies of a report as a log of HdrHistogram's, and several such logs as one report.
//!
//! A log has an interval for each row, tagged `SERVER/SCENARIO`. What a histogram does not tell stands in
//! comments, which other readers of such logs pass over; where a log has none of ours, the histograms have to
//! do.

mod read;
mod write;

pub(crate) use read::merge;
pub(crate) use write::render;

use crate::wire::Totals;
use serde::{Deserialize, Serialize};

/// The beginning of a comment of this program.
const HEAD: &str = "[fibra-load origin] ";
const ROW: &str = "[fibra-load row] ";

/// The run that a log describes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The log.
    #[serde(default)]
    pub(crate) file: String,
    /// The load, in one line.
    pub(crate) load: String,
    /// The generator's machine, in one line.
    pub(crate) machine: String,
    pub(crate) interrupted: bool,
}

/// The data of a row beside its histogram.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Rest {
    tag: String,
    about: String,
    asked: Option<f64>,
    /// With the whole of the interval, of which the log has milliseconds.
    #[serde(flatten)]
    totals: Totals,
    errors: Vec<String>,
    notes: Vec<String>,
}
