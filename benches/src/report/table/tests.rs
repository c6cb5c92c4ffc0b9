//! Tests of `table`.

use super::*;

#[test]
fn columns_are_aligned_by_characters_and_not_by_bytes() {
    let line = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
    let text = lay_out(line("server", "p50"), [line("x", "12.3 µs"), line("y", "4.56 ms")]).to_string();
    let widths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
    assert_eq!(widths, [15; 4], "{text}");
}
