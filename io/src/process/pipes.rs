//! Our ends of the pipes to a child's three streams.
//!
//! Pipes have no flag that keeps a single call from waiting, so our end of each is non-blocking; the child's end is an open
//! file of its own and stays as std made it. Whatever leaves, for std or for another child, is blocking again.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::process::{self, Stdio};

use socket2::SockRef;

use crate::descriptor::Descriptor;
use crate::op::Attempt;
use crate::readiness::Direction;

/// Is the writing end of a pipe to a child's standard input: [`std::process::ChildStdin`], for tasks.
///
/// Dropping it closes the pipe, which the child reads as the end. A write into a pipe whose child has closed it or
/// ended fails with `BrokenPipe`.
///
/// # Cancellation
///
/// A write that has to wait for room is a cancellation point; what was written before stays written.
///
/// # Differences from std
///
/// The open file is non-blocking while it is here, also for clones of its descriptor that were made by other means; turned
/// blocking through one of these, it lets a write block the thread.
pub struct ChildStdin {
    pipe: Descriptor<PipeWriter>,
}

/// Is the reading end of a pipe from a child's standard output: [`std::process::ChildStdout`], for tasks.
///
/// # Cancellation
///
/// A read that has to wait is a cancellation point; it has taken nothing then.
///
/// # Differences from std
///
/// As those of [`ChildStdin`].
pub struct ChildStdout {
    pipe: Descriptor<PipeReader>,
}

/// Is the reading end of a pipe from a child's standard error: [`std::process::ChildStderr`], for tasks. Otherwise as
/// [`ChildStdout`].
pub struct ChildStderr {
    pipe: Descriptor<PipeReader>,
}

/// Takes an end that is as std made it.
fn adopt<P: AsFd + From<OwnedFd>>(fd: OwnedFd) -> Descriptor<P> {
    // It fails for nothing that can be read or written.
    let _ = SockRef::from(&fd).set_nonblocking(true);
    Descriptor::new(P::from(fd), false)
}

/// Deregisters, and makes it as std made it.
fn release<P: AsFd + Into<OwnedFd>>(pipe: Descriptor<P>) -> OwnedFd {
    let fd = pipe.into_inner().into();
    // See `adopt`.
    let _ = SockRef::from(&fd).set_nonblocking(false);
    fd
}

/// A short read or write proves nothing here: what was adopted may be a terminal, or a pipe that keeps packets apart.
fn read(pipe: &Descriptor<PipeReader>, buf: &mut [u8]) -> io::Result<usize> {
    pipe.run(Direction::Read, || None, || pipe.inner().read(buf).map(Attempt::Done))
}

fn read_vectored(pipe: &Descriptor<PipeReader>, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    pipe.run(Direction::Read, || None, || pipe.inner().read_vectored(bufs).map(Attempt::Done))
}

fn write(pipe: &Descriptor<PipeWriter>, buf: &[u8]) -> io::Result<usize> {
    pipe.run(Direction::Write, || None, || pipe.inner().write(buf).map(Attempt::Done))
}

fn write_vectored(pipe: &Descriptor<PipeWriter>, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    pipe.run(Direction::Write, || None, || pipe.inner().write_vectored(bufs).map(Attempt::Done))
}

impl Write for ChildStdin {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        write(&self.pipe, buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        write_vectored(&self.pipe, bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for &ChildStdin {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        write(&self.pipe, buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        write_vectored(&self.pipe, bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the three have in common.
macro_rules! conversions {
    ($($name:ident)+) => {$(
        impl From<OwnedFd> for $name {
            fn from(fd: OwnedFd) -> $name {
                $name { pipe: adopt(fd) }
            }
        }

        impl From<$name> for OwnedFd {
            fn from(end: $name) -> OwnedFd {
                release(end.pipe)
            }
        }

        impl From<process::$name> for $name {
            fn from(end: process::$name) -> $name {
                OwnedFd::from(end).into()
            }
        }

        impl From<$name> for process::$name {
            fn from(end: $name) -> process::$name {
                OwnedFd::from(end).into()
            }
        }

        impl From<$name> for Stdio {
            /// For a pipe from one child straight to another.
            fn from(end: $name) -> Stdio {
                OwnedFd::from(end).into()
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.pipe.fd()
            }
        }

        impl AsRawFd for $name {
            fn as_raw_fd(&self) -> RawFd {
                self.pipe.fd().as_raw_fd()
            }
        }

        impl IntoRawFd for $name {
            fn into_raw_fd(self) -> RawFd {
                OwnedFd::from(self).into_raw_fd()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )+};
}

conversions!(ChildStdin ChildStdout ChildStderr);

/// What the two have that are read from.
macro_rules! reads {
    ($($name:ty),+) => {$(
        impl Read for $name {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                read(&self.pipe, buf)
            }

            fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                read_vectored(&self.pipe, bufs)
            }
        }
    )+};
}

reads!(ChildStdout, &ChildStdout, ChildStderr, &ChildStderr);
