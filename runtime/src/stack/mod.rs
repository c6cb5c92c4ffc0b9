#![doc = include_str!("README.md")]

pub(crate) mod cache;
pub(crate) mod exchange;
pub(crate) mod fresh;
pub(crate) mod guard;
pub(crate) mod handle;
pub(crate) mod overflow;
pub(crate) mod overflow_line;
pub(crate) mod pool;
pub(crate) mod region;
pub(crate) mod size;
pub(crate) mod stacks;
pub(crate) mod sys;

#[cfg(test)]
mod tests;
