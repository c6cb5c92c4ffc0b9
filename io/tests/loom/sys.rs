//! The part of `sys` that the state machines know.

pub(crate) use crate::wait::Direction;
