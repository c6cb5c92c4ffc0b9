//! The connections of a listener as an iterator without end.

#![forbid(unsafe_code)]

use std::io;
use std::iter::FusedIterator;

use super::{TcpListener, TcpStream};

/// Gives the connections of a borrowed listener, one after the other, for ever: made by [`TcpListener::incoming`].
#[derive(Debug)]
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Incoming<'a> {
    pub(super) listener: &'a TcpListener,
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<io::Result<TcpStream>> {
        Some(self.listener.accept().map(|(stream, _peer)| stream))
    }
}

impl FusedIterator for Incoming<'_> {}

/// Gives the connections of a listener that it owns: made by [`TcpListener::into_incoming`].
#[derive(Debug)]
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct IntoIncoming {
    pub(super) listener: TcpListener,
}

impl Iterator for IntoIncoming {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<io::Result<TcpStream>> {
        Some(self.listener.accept().map(|(stream, _peer)| stream))
    }
}

impl FusedIterator for IntoIncoming {}
