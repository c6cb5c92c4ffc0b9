//! `AsyncRead` and `AsyncWrite` of tokio, for an `Async`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Async, Reader, Writer, polled_writes};

impl<S: Reader + Unpin> AsyncRead for Async<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: nothing is read from it, and it is not made uninitialized.
        let place = unsafe { buf.unfilled_mut() };
        let count = ready!(self.polled().read(context, place))?;
        // SAFETY: so many bytes were received into its begin.
        unsafe { buf.assume_init(count) };
        buf.advance(count);
        Poll::Ready(Ok(()))
    }
}

polled_writes!(AsyncWrite, ending by poll_shutdown, is_write_vectored);
