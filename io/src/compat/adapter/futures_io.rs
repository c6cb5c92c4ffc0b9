//! `AsyncRead` and `AsyncWrite` of futures-rs, for an `Async`.

#![forbid(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use ::futures_io::{AsyncRead, AsyncWrite};

use super::{Async, Reader, Writer, polled_writes};

impl<S: Reader + Unpin> AsyncRead for Async<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.polled().read_vectored(context, &mut [IoSliceMut::new(buf)])
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.polled().read_vectored(context, bufs)
    }
}

polled_writes!(AsyncWrite, ending by poll_close);
