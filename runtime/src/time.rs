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
//!
//! # Virtual time
//!
//! A runtime with one worker may run in virtual time: [`Builder::start_paused`](crate::Builder::start_paused), or
//! [`pause`]. Its clock then stands while tasks run. When all tasks sleep, it moves to the next timer. So a test of a
//! retry loop of an hour takes no time, and timers fire in their order whatever the machine does meanwhile.
//!
//! | to | is |
//! | --- | --- |
//! | read the clock | [`now`]; [`Instant::now`] is always the machine's |
//! | stop the clock, let it go on | [`pause`], [`resume`] |
//! | move the clock, in a test | [`advance`] |
//! | let all other tasks do what they can | [`settle`] |
//! | forbid moves meanwhile | [`hold`] |
//!
//! Virtual time reaches all sleeps, timeouts and deadlines of this library, those of sockets included, in tasks. Plain
//! threads have the machine's clock, and so has the blocking pool. An `Instant` that crosses over has no meaning there.
//!
//! The clock moves only when nothing but time can wake a task. These keep it where it is:
//!
//! * a task that waits for the system, for example for a socket, or in [`block_on`](crate::block_on);
//! * a task that waits for a stack;
//! * whatever is on the blocking pool;
//! * a [`hold`], which listeners to signals and a `Readiness` have as well.
//!
//! Meanwhile the worker waits by the machine's clock, until the next timer at the longest. So a timeout of a second
//! around a read without an answer takes a second. A timer beside sockets that never rest does not come. Threads that
//! the program starts itself are not known: a program that waits for one takes a [`hold`], and so does a program that
//! joins a task of another runtime. A loop that yields until the clock has moved never ends.
//!
//! If all tasks sleep, no timer is armed and nothing keeps the clock, none of them ever wakes. Then `run` cancels the
//! main task and panics with the list of all tasks and what they wait for. Tasks that wait for locks in a circle cannot be
//! cancelled; the list then goes to standard error.

#![forbid(unsafe_code)]

pub use std::time::{Duration, Instant};

pub use crate::api::interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use crate::api::sleep::{deadline, sleep, sleep_until};
#[doc(hidden)]
pub use crate::api::sleep::{sleep_to, sleep_within};
pub use crate::api::timeout::{Elapsed, timeout, timeout_at};
pub use crate::api::virtual_time::{advance, hold, now, pause, resume, settle, try_hold};
pub use crate::scheduler::virtual_time::Hold;
