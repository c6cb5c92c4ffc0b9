//! The connections of a listener as an iterator without end.

#![forbid(unsafe_code)]

use std::io;
use std::iter::FusedIterator;

use super::{TcpListener, TcpStream};
use crate::net::options::incoming;

incoming!(TcpListener, TcpStream);

impl TcpListener {
    /// Returns an iterator over the connections that owns the listener.
    ///
    /// # Cancellation
    ///
    /// As for [`accept`](TcpListener::accept), each time.
    #[must_use = "`self` will be dropped if the result is not used"]
    pub fn into_incoming(self) -> IntoIncoming {
        IntoIncoming { listener: self }
    }
}

/// Iterates over connections and owns the listener.
///
/// It is made by [`TcpListener::into_incoming`].
#[derive(Debug)]
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct IntoIncoming {
    listener: TcpListener,
}

impl Iterator for IntoIncoming {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<io::Result<TcpStream>> {
        Some(self.listener.accept().map(|(stream, _peer)| stream))
    }
}

impl FusedIterator for IntoIncoming {}
