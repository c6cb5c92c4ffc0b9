#![doc = include_str!("README.md")]

mod alternate;
mod exchange;
mod guard;
mod handle;
mod line;
mod overflow_line;
mod pool;
mod region;
mod shelf;
mod size;
mod stacks;
mod sys;

pub(crate) mod overflow;

#[cfg(test)]
mod tests;

pub use guard::Guards;
pub(crate) use handle::Stack;
pub(crate) use pool::{Pool, Trim};
pub(crate) use size::check_fits;
pub(crate) use stacks::{Config, Stacks, is_a_matter_of_turn};
