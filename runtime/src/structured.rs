//! Structured concurrency: concurrent work that is over when the call returns.

#![forbid(unsafe_code)]

pub use crate::api::for_each::parallel_for_each;
pub use crate::api::group::TaskGroup;
pub use crate::api::group_error::{GroupError, StillRunning};
pub use crate::api::join::join;
pub use crate::api::parallel_map::parallel_map;
#[doc(hidden)]
pub use crate::api::race::{Arm, Racer, no_value, run as run_race};
pub use crate::api::race::{Either, race, race_local};
pub use crate::api::range::{Number, parallel_for};
