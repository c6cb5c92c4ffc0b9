//! Tests of `payload`.

use super::*;
use std::collections::HashSet;

fn request(size: usize, connection: u32, number: u32) -> Vec<u8> {
    let mut bytes = vec![0; size];
    fill(&mut bytes, connection, number);
    bytes
}

#[test]
fn no_two_requests_are_alike() {
    let all: HashSet<_> = (0..100).flat_map(|c| (0..100).map(move |n| request(8, c, n))).collect();
    assert_eq!(all.len(), 10_000);
}

#[test]
fn every_word_differs_between_requests() {
    let (one, two) = (request(64, 3, 8), request(64, 3, 9));
    assert!(one.chunks(8).zip(two.chunks(8)).all(|(a, b)| a != b));
}

#[test]
fn a_request_tells_its_name() {
    assert_eq!(name(&request(8, 3, 9)), Some((3, 9)));
    assert_eq!(name(&request(64, u32::MAX, 0)), Some((u32::MAX, 0)));
    assert_eq!(name(&request(7, 1, 1)), None);
}

#[test]
fn any_size_is_filled() {
    assert_eq!(request(1, 0, 7), [7]);
    assert_eq!(request(13, 1, 1).len(), 13);
}
