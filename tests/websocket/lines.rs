//! What a bad line does to sessions of websockets: `websocket_echo` is spoken to through a proxy that does harm.
#![cfg(target_os = "linux")]

use crate::common::line;
use crate::common::websocket::WebsocketEcho;

#[test]
fn delayed() {
    line::delayed::<WebsocketEcho>();
}

#[test]
fn sliced_into_single_bytes() {
    line::sliced_into_single_bytes::<WebsocketEcho>();
}

#[test]
fn glued_together() {
    line::glued_together::<WebsocketEcho>();
}

#[test]
fn throttled() {
    line::throttled::<WebsocketEcho>();
}

#[test]
fn cut() {
    line::cut::<WebsocketEcho>();
}

#[test]
fn reset() {
    line::reset::<WebsocketEcho>();
}

#[test]
fn no_longer_read_from() {
    line::no_longer_read_from::<WebsocketEcho>();
}
