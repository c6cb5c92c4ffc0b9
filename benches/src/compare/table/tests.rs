//! Tests of `table`.

use super::*;

#[test]
fn figures_have_three_digits_or_all_that_count() {
    let cells = [4.5, 45.67, 456.7, 45_678.0, 45_678_900.0].map(|figure| cell(Measure::Time, figure));
    assert_eq!(cells, ["4.50", "45.7", "457", "45,678", "45.7 ms"]);
    assert_eq!(cell(Measure::Memory, 4_570.4), "4,570");
}

#[test]
fn as_many_columns_as_fit_and_one_at_least() {
    let columns = [("may", 7), ("tokio multi", 7), ("smol", 7)];
    assert_eq!([0, 8, 16, 23, 24].map(|room| fitting(&columns, room)), [1, 1, 2, 2, 3]);
}

#[test]
fn names_have_two_lines() {
    assert_eq!(lines("tokio multi"), ["tokio", "multi"]);
    assert_eq!(lines("parking_lot"), ["parking", "_lot"]);
    assert_eq!(lines("may"), ["", "may"]);
}
