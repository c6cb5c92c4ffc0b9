//! Tests of `sizes`.

use super::*;

fn sizes(text: &str) -> Sizes {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn sizes_have_units() {
    assert_eq!(bytes("64"), Ok(64));
    assert_eq!(bytes("16k"), Ok(16 << 10));
    for wrong in ["0", "17M", "4G", "99999999999", "-1", ""] {
        assert!(bytes(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn sizes_have_weights() {
    assert_eq!(sizes("64").parts(), [(64, 1)]);
    assert_eq!(sizes("64:9,1k:1").parts(), [(64, 9), (1024, 1)]);
    assert_eq!(sizes("64:9,1k:1").to_string(), "64 B (90 %), 1.00 KiB (10 %)");
    for wrong in ["64:0", "64:", ":1", "64,,64", "64:1:1", ""] {
        assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
    }
}

#[test]
fn a_mixture_is_as_the_weights_say() {
    let sizes = sizes("64:9,1k:1");
    let long = (0..100).flat_map(|c| (0..100).map(move |n| (c, n)));
    let long = long.filter(|&(c, n)| sizes.of(c, n) == 1024).count();
    assert!((900..1100).contains(&long), "{long} of 10000");
}
