//! Conversions to and from std's types and bare descriptors, for all types that own a descriptor.
//!
//! A value that leaves is deregistered first, and behaves as if std had made it. A value that comes
//! keeps its timeouts and, unless it is a listener, its mode. Each type is a newtype of a value that
//! [`Wraps`] its counterpart in std.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::process::Stdio;

use crate::fs::File;
use crate::io::{PipeReader, PipeWriter};
use crate::net::{TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use crate::process::{ChildStderr, ChildStdin, ChildStdout};
use crate::waiting::convert::Wraps;

/// Implements the conversions to and from bare descriptors, by way of `OwnedFd`.
macro_rules! raw_conversions {
    ($ours:ident) => {
        impl IntoRawFd for $ours {
            fn into_raw_fd(self) -> RawFd {
                OwnedFd::from(self).into_raw_fd()
            }
        }

        impl FromRawFd for $ours {
            unsafe fn from_raw_fd(fd: RawFd) -> $ours {
                // SAFETY: the caller promises that the descriptor is open and has no other owner.
                unsafe { OwnedFd::from_raw_fd(fd) }.into()
            }
        }
    };
}

/// Conversions to and from std's types and descriptors, and std's `Debug`.
macro_rules! std_conversions {
    ($($ours:ident from $std:ty,)+) => {$(
        impl From<$std> for $ours {
            fn from(inner: $std) -> $ours {
                $ours(Wraps::adopt(inner))
            }
        }

        impl From<$ours> for $std {
            fn from(ours: $ours) -> $std {
                ours.0.into_std()
            }
        }

        impl From<OwnedFd> for $ours {
            fn from(fd: OwnedFd) -> $ours {
                <$std>::from(fd).into()
            }
        }

        impl From<$ours> for OwnedFd {
            fn from(ours: $ours) -> OwnedFd {
                ours.0.into_std().into()
            }
        }

        impl AsFd for $ours {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.expose().as_fd()
            }
        }

        impl AsRawFd for $ours {
            fn as_raw_fd(&self) -> RawFd {
                self.0.expose().as_raw_fd()
            }
        }

        raw_conversions!($ours);

        impl fmt::Debug for $ours {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.std().fmt(f)
            }
        }
    )+};
}

std_conversions! {
    TcpStream from std::net::TcpStream,
    TcpListener from std::net::TcpListener,
    UdpSocket from std::net::UdpSocket,
    UnixStream from std::os::unix::net::UnixStream,
    UnixListener from std::os::unix::net::UnixListener,
    UnixDatagram from std::os::unix::net::UnixDatagram,
    PipeReader from std::io::PipeReader,
    PipeWriter from std::io::PipeWriter,
    ChildStdin from std::process::ChildStdin,
    ChildStdout from std::process::ChildStdout,
    ChildStderr from std::process::ChildStderr,
    File from std::fs::File,
}

raw_conversions!(TcpSocket);

/// Conversions to what a child reads or writes.
macro_rules! stdio_conversions {
    ($($ours:ident)+) => {$(
        impl From<$ours> for Stdio {
            fn from(ours: $ours) -> Stdio {
                ours.0.into_std().into()
            }
        }
    )+};
}

stdio_conversions!(File PipeReader PipeWriter ChildStdin ChildStdout ChildStderr);
