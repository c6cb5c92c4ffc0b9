//! Tests in virtual time: the clock moves when all tasks sleep, so that a wait takes as long as it says and a test no time.
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses what it needs; an expectation would fail in the one that uses all"
)]

use std::time::Duration;

use fibra_runtime::time::now;
use fibra_runtime::{Builder, Runtime};

use crate::common::hang_guard;

/// What a timer may be late in virtual time.
pub(crate) const TICK: Duration = Duration::from_micros(20);

/// Runs `promise` in virtual time.
pub(crate) fn paused<T>(promise: impl FnOnce() -> T) -> T {
    paused_by(Runtime::builder(), promise)
}

/// Runs `promise` in virtual time, in a runtime that `builder` describes.
pub(crate) fn paused_by<R: From<Runtime>, T>(builder: Builder<R>, promise: impl FnOnce() -> T) -> T {
    let _guard = hang_guard();
    builder.start_paused(true).run(promise).expect("a runtime")
}

/// Returns how long `f` takes by the clock of its task.
pub(crate) fn taken(f: impl FnOnce()) -> Duration {
    let begin = now();
    f();
    now() - begin
}

/// Returns true if that is what a wait for `expected` takes in virtual time.
pub(crate) fn is_about(taken: Duration, expected: Duration) -> bool {
    (expected..=expected + TICK).contains(&taken)
}
