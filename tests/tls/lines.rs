//! What a bad line does to sessions of TLS: `tls_echo` is spoken to through a proxy that does harm.
#![cfg(target_os = "linux")]

use crate::common::line;
use crate::common::tls::TlsEcho;

#[test]
fn delayed() {
    line::delayed::<TlsEcho>();
}

#[test]
fn sliced_into_single_bytes() {
    line::sliced_into_single_bytes::<TlsEcho>();
}

#[test]
fn glued_together() {
    line::glued_together::<TlsEcho>();
}

#[test]
fn throttled() {
    line::throttled::<TlsEcho>();
}

#[test]
fn cut() {
    line::cut::<TlsEcho>();
}

#[test]
fn reset() {
    line::reset::<TlsEcho>();
}

#[test]
fn no_longer_read_from() {
    line::no_longer_read_from::<TlsEcho>();
}
