//! The order in which a round wakes.

#![forbid(unsafe_code)]

use super::*;

#[test]
fn a_round_wakes_each_source_once_in_the_order_of_arrival() {
    let mut sources: Vec<_> = (0..16).map(|_| Arc::new(Source::new(-1))).collect();
    // Whatever order the allocator gives them.
    sources.sort_by_key(|source| std::cmp::Reverse(Arc::as_ptr(source).addr()));
    let mut round = Round::new();
    sources.iter().chain(&sources).for_each(|source| round.add(source));
    let in_order =
        round.sources.iter().zip(&sources).all(|(seen, source)| seen.as_ptr() == Arc::as_ptr(source));
    assert!(in_order && round.sources.len() == sources.len());
}
