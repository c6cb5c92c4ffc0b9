//! What a wait finds at its deadline.

#![forbid(unsafe_code)]

use std::time::Duration;

use super::*;

#[test]
fn a_wait_looks_once_more_at_its_deadline() {
    let deadline = Instant::now() + Duration::from_millis(5);
    let look = || (Instant::now() >= deadline).then_some(());
    assert_eq!(ManualSource::default().wait(Direction::Read, Some(deadline), look), Some(()));
    let found = ManualSource::default().wait_or_fail(Direction::Write, Some(deadline), look);
    assert_eq!(found.unwrap(), Some(()));
}
