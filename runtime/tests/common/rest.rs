//! Waits for those beside the test.

use std::time::Duration;

use fibra_runtime::{self as fibra, wait};

/// Sleeps until all other tasks of the caller's runtime are asleep: each has begun, and has come as far as it goes.
pub(crate) fn until_others_sleep() {
    while !wait::others_are_asleep() {
        fibra::sleep(Duration::from_micros(200));
    }
}
