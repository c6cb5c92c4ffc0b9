//! Tests of `figures`.

use super::*;

#[test]
fn quartiles_lie_between_samples() {
    assert_eq!(quartiles(&[4.0, 1.0, 3.0, 2.0, 5.0]), [2.0, 3.0, 4.0]);
    assert_eq!(quartiles(&[1.0, 2.0]), [1.25, 1.5, 1.75]);
    assert_eq!(quartiles(&[7.0]), [7.0; 3]);
}

#[test]
fn a_drift_of_the_machine_does_not_move_the_ratio() {
    assert_eq!(median_ratio(&[1.0, 10.0, 100.0], &[2.0, 20.0, 200.0]), Some(0.5));
    assert_eq!(median_ratio(&[], &[]), None);
}
