//! Tests of `units`.

use super::*;

#[test]
fn times_have_three_digits() {
    let texts = [950, 1_000, 12_345, 999_499, 999_500, 4_560_000, 7_890_000_000].map(nanos);
    assert_eq!(texts, ["950 ns", "1.00 µs", "12.3 µs", "999 µs", "1.00 ms", "4.56 ms", "7.89 s"]);
}

#[test]
fn chosen_times_are_short() {
    assert_eq!([300, 1_500, 5_000].map(|ms| time(Duration::from_millis(ms))), ["300 ms", "1.5 s", "5 s"]);
}

#[test]
fn thousands_are_apart() {
    assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
}

#[test]
fn low_rates_have_a_digit() {
    let texts = [0.0, 0.04, 0.4, 5.0, 9.94, 9.96, 1_234.5].map(rate);
    assert_eq!(texts, ["0", "0", "0.4", "5", "9.9", "10", "1,235"]);
}

#[test]
fn sizes_have_units() {
    assert_eq!([512, 1 << 20, 3 << 19, 1 << 40].map(bytes), ["512 B", "1.00 MiB", "1.50 MiB", "1.00 TiB"]);
}
