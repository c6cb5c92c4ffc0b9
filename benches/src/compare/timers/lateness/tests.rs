//! Tests of `lateness`.

use super::*;

#[test]
fn sleeps_are_spread_over_the_span() {
    let all: Vec<_> = (0..1000).map(|number| Wakes::duration(number).as_millis()).collect();
    assert!(all.iter().all(|millis| (1..=100).contains(millis)), "{all:?}");
    assert!((400..600).contains(&all.iter().filter(|&&millis| millis < 50).count()));
}
