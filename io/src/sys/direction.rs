//! The directions of a transfer.

#![forbid(unsafe_code)]

/// Which way the bytes of an operation go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Towards us: `read`, `peek`, `accept`.
    Read,
    /// Away from us: `write`, `connect`.
    Write,
}
