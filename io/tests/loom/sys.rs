//! The part of `sys` that the state machines know.

#[path = "../../src/sys/direction.rs"]
mod direction;

pub(crate) use self::direction::Direction;
