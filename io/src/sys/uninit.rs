//! Reads into memory that need not be initialized, and whose begin is then.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use socket2::SockRef;

use super::file::Room;

/// Receives what is there, without waiting.
pub(crate) fn recv_uninit(fd: BorrowedFd<'_>, buf: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    SockRef::from(&fd).recv_with_flags(buf, libc::MSG_DONTWAIT)
}

/// Such memory as the calls of files take it.
pub(crate) struct Uninit<'a>(libc::iovec, PhantomData<&'a mut [MaybeUninit<u8>]>);

impl<'a> Uninit<'a> {
    pub(crate) fn new(buf: &'a mut [MaybeUninit<u8>]) -> Uninit<'a> {
        let vector = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
        Uninit(vector, PhantomData)
    }
}

// SAFETY: it is a buffer that is borrowed for writing.
unsafe impl Room for Uninit<'_> {
    fn vectors(&mut self) -> &[libc::iovec] {
        std::slice::from_ref(&self.0)
    }
}
