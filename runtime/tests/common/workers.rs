//! Runs a test on one, on two and on four workers.

use crate::common::{hang_guard, runtime};

pub(crate) fn on_workers(test: impl Fn() + Send + Sync) {
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        runtime(workers).run(&test);
    }
}
