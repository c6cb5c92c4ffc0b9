//! The order of the addresses. The race itself is run in `tests/connect.rs`.

#![forbid(unsafe_code)]

use std::net::SocketAddr;

use super::alternate;

fn order(addresses: &[&str]) -> Vec<String> {
    let addresses = addresses.iter().map(|address| address.parse::<SocketAddr>().unwrap()).collect();
    alternate(addresses).map(|address| address.port().to_string()).collect()
}

#[test]
fn families_take_turns() {
    assert_eq!(order(&["[::1]:1", "[::1]:2", "127.0.0.1:3", "127.0.0.1:4"]), ["1", "3", "2", "4"]);
}

#[test]
fn the_first_address_stays_the_first() {
    assert_eq!(order(&["127.0.0.1:1", "[::1]:2", "[::1]:3"]), ["1", "2", "3"]);
}

#[test]
fn what_is_left_of_one_family_follows_in_order() {
    assert_eq!(order(&["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "[::1]:4"]), ["1", "4", "2", "3"]);
    assert_eq!(order(&["127.0.0.1:1", "127.0.0.1:2"]), ["1", "2"]);
}
