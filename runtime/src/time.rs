//! Sleeping, deadlines and ticks.
//!
//! The clock is std's monotonic one, and so are its types. Timers have a resolution of 16 µs and never end early. A timeout
//! that ends beyond what the clock can tell is none: it never ends.
//!
//! | to | is |
//! | --- | --- |
//! | wait for a time | [`sleep`], [`sleep_until`] |
//! | do something again and again | [`interval()`], [`interval_at`] |
//! | bound whatever some code waits for | [`timeout`], [`timeout_at`] |
//! | bound one operation | its own `_timeout` and `_deadline` forms; [`deadline`] makes one time of several waits |
//!
//! In a `select!` the clock is a channel: `channel::after`, `channel::tick`, and its case `default(timeout)`.

#![forbid(unsafe_code)]

pub use std::time::{Duration, Instant};

pub use crate::api::interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use crate::api::sleep::{deadline, sleep, sleep_until};
#[doc(hidden)]
pub use crate::api::sleep::{sleep_to, sleep_within};
pub use crate::api::timeout::{Elapsed, timeout, timeout_at};
