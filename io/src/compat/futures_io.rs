//! The traits of futures-rs.

#![forbid(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use ::futures_io::{AsyncRead, AsyncWrite};

use super::adapter::polled_writes;
use super::{Async, Socket};

impl<S: Socket + Unpin> AsyncRead for Async<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_recv(buf, context)
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_recv_vectored(bufs, context)
    }
}

polled_writes!(AsyncWrite, ending by poll_close);
