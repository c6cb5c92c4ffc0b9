//! `Read` and `Write` of hyper 1, for an `Async`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};

use super::{Async, Reader, Writer, polled_writes};

impl<S: Reader + Unpin> Read for Async<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: nothing is read from it, and it is not made uninitialized.
        let place = unsafe { buf.as_mut() };
        let count = ready!(self.polled().read(context, place))?;
        // SAFETY: so many bytes were received into its begin.
        unsafe { buf.advance(count) };
        Poll::Ready(Ok(()))
    }
}

polled_writes!(Write, ending by poll_shutdown, is_write_vectored);
