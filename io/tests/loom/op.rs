//! Models have no time: a round is due at once.

use std::time::Duration;

pub(crate) const RECHECK: Duration = Duration::ZERO;
