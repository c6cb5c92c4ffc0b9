//! `into_split`: the two directions of a stream as values of their own.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use super::{TcpStream, UnixStream};

mod sealed {
    /// Is a stream that can be split.
    pub trait Split {
        /// Tells the peer that nothing more comes.
        fn end_writing(&self);
    }
}

use sealed::Split;

/// Reads from a stream that was split.
///
/// Made by [`TcpStream::into_split`] and [`UnixStream::into_split`]. The options of the stream are reached through
/// [`as_ref`](AsRef::as_ref).
///
/// # Cancellation
///
/// As for the stream: a wait is a cancellation point, and has taken nothing.
#[derive(Debug)]
pub struct OwnedReadHalf<S>(Arc<S>);

/// Writes to a stream that was split, and ends its write direction when it is dropped.
///
/// Made by [`TcpStream::into_split`] and [`UnixStream::into_split`]. The options of the stream are reached through
/// [`as_ref`](AsRef::as_ref).
///
/// # Cancellation
///
/// As for the stream: a wait is a cancellation point. What was written stays written.
#[derive(Debug)]
pub struct OwnedWriteHalf<S: Split> {
    stream: Arc<S>,
    ends_on_drop: bool,
}

/// Gives back two halves that are not of one stream.
pub struct ReuniteError<S: Split>(pub OwnedReadHalf<S>, pub OwnedWriteHalf<S>);

fn split<S: Split>(stream: S) -> (OwnedReadHalf<S>, OwnedWriteHalf<S>) {
    let stream = Arc::new(stream);
    (OwnedReadHalf(Arc::clone(&stream)), OwnedWriteHalf { stream, ends_on_drop: true })
}

/// Writes `into_split` for a stream.
macro_rules! splits {
    ($ours:ident, $example:literal) => {
        impl Split for $ours {
            fn end_writing(&self) {
                // A connection that has ended has told its peer already.
                _ = self.shutdown(Shutdown::Write);
            }
        }

        impl $ours {
            /// Splits the stream into a half that reads and a half that writes, for two tasks.
            ///
            /// Dropping the half that writes tells the peer that nothing more comes. The stream is closed when both are
            /// dropped. Tasks that borrow need no halves: `&` of the stream reads and writes.
            ///
            /// # Examples
            ///
            /// ```
            /// use std::io::{Read, Write};
            #[doc = $example]
            /// let (mut reader, mut writer) = here.into_split();
            /// let echo = std::thread::spawn(move || -> std::io::Result<()> {
            ///     let mut all = Vec::new();
            ///     there.read_to_end(&mut all)?;
            ///     there.write_all(&all)
            /// });
            /// writer.write_all(b"hello")?;
            /// drop(writer);
            /// let mut text = String::new();
            /// reader.read_to_string(&mut text)?;
            /// assert_eq!(text, "hello");
            /// echo.join().unwrap()?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            #[doc(alias = "split")]
            pub fn into_split(self) -> (OwnedReadHalf<$ours>, OwnedWriteHalf<$ours>) {
                split(self)
            }
        }
    };
}

splits!(
    TcpStream,
    "use fibra_io::net::{TcpListener, TcpStream};

let listener = TcpListener::bind(\"127.0.0.1:0\")?;
let here = TcpStream::connect(listener.local_addr()?)?;
let (mut there, _) = listener.accept()?;"
);
splits!(
    UnixStream,
    "use fibra_io::net::UnixStream;

let (here, mut there) = UnixStream::pair()?;"
);

impl<S: Split> OwnedReadHalf<S> {
    /// Puts the two halves of a stream together again.
    ///
    /// # Errors
    ///
    /// With both halves, if they are of two streams.
    ///
    /// # Examples
    ///
    /// ```
    /// use fibra_io::net::UnixStream;
    ///
    /// let (one, other) = UnixStream::pair()?;
    /// let ((one_reads, one_writes), (other_reads, other_writes)) = (one.into_split(), other.into_split());
    /// let error = one_reads.reunite(other_writes).unwrap_err();
    /// let one = error.0.reunite(one_writes).unwrap();
    /// let other = other_reads.reunite(error.1).unwrap();
    /// assert!(one.local_addr()?.is_unnamed() && other.local_addr()?.is_unnamed());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reunite(self, other: OwnedWriteHalf<S>) -> Result<S, ReuniteError<S>> {
        if !Arc::ptr_eq(&self.0, &other.stream) {
            return Err(ReuniteError(self, other));
        }
        other.forget();
        Ok(Arc::into_inner(self.0).expect("two halves are all that own the stream"))
    }
}

impl<S: Split> OwnedWriteHalf<S> {
    /// Drops the half and leaves the write direction open.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::{ErrorKind, Read};
    /// use fibra_io::net::UnixStream;
    ///
    /// let (here, mut there) = UnixStream::pair()?;
    /// let (reader, writer) = here.into_split();
    /// writer.forget();
    /// there.set_nonblocking(true)?;
    /// assert_eq!(there.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    /// drop(reader);
    /// assert_eq!(there.read(&mut [0])?, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn forget(mut self) {
        self.ends_on_drop = false;
    }
}

impl<S: Split> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if self.ends_on_drop {
            self.stream.end_writing();
        }
    }
}

impl<S> Read for OwnedReadHalf<S>
where
    for<'a> &'a S: Read,
{
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buf)
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self.0).read_vectored(bufs)
    }
}

impl<S: Split> Write for OwnedWriteHalf<S>
where
    for<'a> &'a S: Write,
{
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self.stream).write(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self.stream).write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<S> AsRef<S> for OwnedReadHalf<S> {
    fn as_ref(&self) -> &S {
        &self.0
    }
}

impl<S: Split> AsRef<S> for OwnedWriteHalf<S> {
    fn as_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: Split> fmt::Debug for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReuniteError").finish_non_exhaustive()
    }
}

impl<S: Split> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves are of two streams")
    }
}

impl<S: Split> Error for ReuniteError<S> {}
