//! Tests of `timeline`.

use super::*;

#[test]
fn seconds_have_round_marks() {
    let labels: Vec<_> = second_ticks(6.0).into_iter().map(|tick| tick.label).collect();
    assert_eq!(labels, ["0", "1", "2", "3", "4", "5", "6"]);
}
