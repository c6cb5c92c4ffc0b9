//! Tests of `latency`.

use super::*;

#[test]
fn the_percentile_axis_counts_nines() {
    assert!((nines(0.99) - 2.0).abs() < 1e-9);
    assert!((share(3.0) - 0.999).abs() < 1e-12);
    assert_eq!([0.5, 0.9, 0.99, 0.9995].map(percentile_name), ["p50", "p90", "p99.0", "p99.950"]);
}
