//! What is left of a file can be copied into.

#![forbid(unsafe_code)]

use std::io;

use super::File;
use crate::io::{Pages, copy_with};
use crate::net::{TcpStream, UnixStream};

mod sealed {
    pub trait Sealed {}
}

/// What [`File::copy_to`] can copy into: a [`File`], or a stream of [`net`](crate::net).
pub trait CopyTarget: sealed::Sealed {
    #[doc(hidden)]
    fn fill_from(&self, file: &File) -> io::Result<u64>;
}

macro_rules! targets {
    ($($target:ident)+) => {$(
        impl sealed::Sealed for $target {}

        impl CopyTarget for $target {
            fn fill_from(&self, file: &File) -> io::Result<u64> {
                copy_with(&mut &*file, &mut &*self, Pages::Shared)
            }
        }
    )+};
}

targets!(File TcpStream UnixStream);
