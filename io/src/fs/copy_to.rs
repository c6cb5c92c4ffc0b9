//! Copying what is left of a file in the kernel.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsFd;

use super::File;
use crate::io::copy;
use crate::net::socket::{Kind, Socket};
use crate::net::{TcpStream, UnixStream};
use crate::op::Attempt;
use crate::sys::file;

/// Bytes that one way to the pool copies: some milliseconds, after which a cancel is seen.
const PIECE: usize = 8 << 20;

mod sealed {
    pub trait Sealed {}
}

/// What [`File::copy_to`] can copy into: a [`File`], or a stream of [`net`](crate::net).
pub trait CopyTarget: sealed::Sealed {
    #[doc(hidden)]
    fn fill_from(&self, file: &File) -> io::Result<u64>;
}

impl sealed::Sealed for File {}

impl CopyTarget for File {
    fn fill_from(&self, file: &File) -> io::Result<u64> {
        let piece = || file.channel().at_position(|| file::copy_range(file.as_fd(), self.as_fd(), PIECE));
        copy_pieces(file, piece, || copy(&mut &*file, &mut &*self))
    }
}

macro_rules! streams {
    ($($stream:ident)+) => {$(
        impl sealed::Sealed for $stream {}

        impl CopyTarget for $stream {
            fn fill_from(&self, file: &File) -> io::Result<u64> {
                send(file, &self.0, || copy(&mut &*file, &mut &*self))
            }
        }
    )+};
}

streams!(TcpStream UnixStream);

/// Sends the file into a socket, or lets `otherwise` do it.
fn send<S: Kind>(
    file: &File,
    socket: &Socket<S>,
    otherwise: impl FnOnce() -> io::Result<u64>,
) -> io::Result<u64> {
    let (from, to) = (file.as_fd(), socket.fd());
    let loan = socket.lend()?;
    let call = || {
        loan.renew()?;
        file.channel().at_position(|| file::send_file(from, to, PIECE)).map(Attempt::Done)
    };
    copy_pieces(file, || socket.dispatch(call), otherwise)
}

/// Copies piece after piece. What refuses the first one, or finds nothing at once, as the files of `/proc` may, is left to
/// `otherwise`.
fn copy_pieces(
    file: &File,
    mut piece: impl FnMut() -> io::Result<usize>,
    otherwise: impl FnOnce() -> io::Result<u64>,
) -> io::Result<u64> {
    if file.channel().is_endless() {
        return otherwise();
    }
    let mut copied = 0;
    loop {
        match piece() {
            Ok(0) if copied == 0 => return otherwise(),
            Ok(0) => return Ok(copied),
            Ok(n) => copied += n as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if copied == 0 && is_unfit(&error) => return otherwise(),
            Err(error) => return Err(error),
        }
    }
}

/// True if the kernel does not copy between these two: other file systems, or a target that is appended to.
fn is_unfit(error: &io::Error) -> bool {
    file::is_refusal(error) || matches!(error.raw_os_error(), Some(libc::EBADF | libc::ESPIPE))
}
