//! To and from std's types and bare descriptors. Whatever leaves is deregistered first, and behaves as if std had
//! made it; whatever comes keeps the mode and the timeouts that it has.

use std::net;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use super::{TcpListener, TcpStream};

impl From<net::TcpStream> for TcpStream {
    fn from(stream: net::TcpStream) -> TcpStream {
        TcpStream::adopt(stream)
    }
}

impl From<TcpStream> for net::TcpStream {
    fn from(stream: TcpStream) -> net::TcpStream {
        stream.into_std()
    }
}

impl From<OwnedFd> for TcpStream {
    fn from(fd: OwnedFd) -> TcpStream {
        TcpStream::adopt(fd.into())
    }
}

impl From<TcpStream> for OwnedFd {
    fn from(stream: TcpStream) -> OwnedFd {
        stream.into_std().into()
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.std().as_fd()
    }
}

impl AsRawFd for TcpStream {
    fn as_raw_fd(&self) -> RawFd {
        self.std().as_raw_fd()
    }
}

impl IntoRawFd for TcpStream {
    fn into_raw_fd(self) -> RawFd {
        self.into_std().into_raw_fd()
    }
}

impl FromRawFd for TcpStream {
    unsafe fn from_raw_fd(fd: RawFd) -> TcpStream {
        // SAFETY: the caller's promise is the same: the descriptor is open, and nobody else's.
        TcpStream::adopt(unsafe { net::TcpStream::from_raw_fd(fd) })
    }
}

impl From<net::TcpListener> for TcpListener {
    fn from(listener: net::TcpListener) -> TcpListener {
        TcpListener::adopt(listener)
    }
}

impl From<TcpListener> for net::TcpListener {
    fn from(listener: TcpListener) -> net::TcpListener {
        listener.into_std()
    }
}

impl From<OwnedFd> for TcpListener {
    fn from(fd: OwnedFd) -> TcpListener {
        TcpListener::adopt(fd.into())
    }
}

impl From<TcpListener> for OwnedFd {
    fn from(listener: TcpListener) -> OwnedFd {
        listener.into_std().into()
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.expose().as_fd()
    }
}

impl AsRawFd for TcpListener {
    fn as_raw_fd(&self) -> RawFd {
        self.expose().as_raw_fd()
    }
}

impl IntoRawFd for TcpListener {
    fn into_raw_fd(self) -> RawFd {
        self.into_std().into_raw_fd()
    }
}

impl FromRawFd for TcpListener {
    unsafe fn from_raw_fd(fd: RawFd) -> TcpListener {
        // SAFETY: the caller's promise is the same: the descriptor is open, and nobody else's.
        TcpListener::adopt(unsafe { net::TcpListener::from_raw_fd(fd) })
    }
}
