//! Tests of `process`.

use super::*;

#[test]
fn our_own_usage_can_be_read() {
    let usage = Usage::of(std::process::id()).expect("this process lives");
    assert!(usage.resident > 0 && usage.peak >= usage.resident);
}

#[test]
fn a_line_of_status_is_in_kibibytes() {
    assert_eq!(kibibytes("Name:\tx\nVmRSS:\t    12 kB\n", "VmRSS:"), Some(12 * 1024));
    assert_eq!(kibibytes("Name:\tx\n", "VmRSS:"), None);
}
