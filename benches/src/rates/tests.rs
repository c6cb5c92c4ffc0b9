//! Tests of `rates`.

use super::*;

fn rungs(text: &str) -> Vec<f64> {
    text.parse::<Rates>().unwrap_or_else(|error| panic!("{text}: {error}")).0
}

#[test]
fn a_ladder_is_a_list_or_doubles() {
    assert_eq!(rungs("500"), [500.0]);
    assert_eq!(rungs("1k,2500,5k"), [1000.0, 2500.0, 5000.0]);
    assert_eq!(rungs("1k..5k"), [1000.0, 2000.0, 4000.0, 5000.0]);
    assert_eq!(rungs("1k..4k,9k"), [1000.0, 2000.0, 4000.0, 9000.0]);
    for wrong in ["", "0", "x", "1k..", "5k..1k", "1,,2", "1e12", "NaN", "inf"] {
        assert!(wrong.parse::<Rates>().is_err(), "{wrong}");
    }
}
