//! The clock of the models. Deadlines of models are over before they begin, and so are not in the future of `now`.
//! The time of the machine stands still, so that each run of a model takes the steps that it took before.

use std::sync::LazyLock;
use std::time::Instant;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The deadlines of models are over.
pub(crate) fn on_machine(_at: Instant) -> Instant {
    *START
}

pub(crate) fn machine() -> Instant {
    *START
}
