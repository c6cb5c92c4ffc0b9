//! The part of `waiting` that registers sources.

#[path = "../../src/waiting/registration.rs"]
pub(crate) mod registration;
#[path = "../../src/waiting/set.rs"]
mod set;
