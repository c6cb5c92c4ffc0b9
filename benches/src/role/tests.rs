//! Tests of `role`.

use super::*;

#[test]
fn server_and_generator_are_on_two_cores_where_there_are_two() {
    let places = |allowed: &[usize], siblings: &[usize]| {
        let places = Places::among(allowed, |_| siblings.to_vec());
        (places.server, places.generator)
    };
    assert_eq!(places(&[0, 1, 2, 3], &[0, 1]), (Some(0), Some(2)));
    assert_eq!(places(&[0, 1, 2, 3], &[0, 2]), (Some(0), Some(1)));
    assert_eq!(places(&[4, 5], &[4, 5]), (Some(4), Some(5)));
    assert_eq!(places(&[0, 1], &[]), (Some(0), Some(1)));
    assert_eq!((places(&[3], &[3]), places(&[], &[])), ((None, None), (None, None)));
}
