//! Tests of `pairs`.

use super::*;

#[test]
fn the_median_is_not_moved_by_one_bad_run() {
    assert_eq!(median(&[1.0, 900.0, 1.1, 0.9, 1.2]), 1.1);
    assert_eq!(median(&[3.0]), 3.0);
}

#[test]
fn the_middle_half_leaves_out_both_ends() {
    let figures = [4.0, 1.0, 3.0, 2.0];
    assert_eq!((quantile(&figures, 0.25), quantile(&figures, 0.75)), (2.0, 3.0));
}
