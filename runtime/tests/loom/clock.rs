//! A clock that stands still: models have no time, and each run of one takes the steps that it took before.

use std::sync::LazyLock;
use std::time::Instant;

static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(crate) fn now() -> Instant {
    *NOW
}

pub(crate) fn machine() -> Instant {
    *NOW
}
