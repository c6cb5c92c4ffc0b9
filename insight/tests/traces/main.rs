//! The flight recorder and its traces.

mod decoder;
mod files;
mod recorders;
