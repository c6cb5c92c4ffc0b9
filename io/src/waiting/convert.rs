//! What the types of this crate have in common with std's.

#![forbid(unsafe_code)]

use std::os::fd::AsFd;

/// What stands behind a type of ours: it owns a value of std's type `S`.
pub(crate) trait Wraps<S: AsFd> {
    /// Takes a value of whatever history.
    fn adopt(inner: S) -> Self;

    /// Deregisters, and gives std's value away, in the mode that the user has asked for.
    fn into_std(self) -> S;

    /// The descriptor for the user, who may clone it.
    fn expose(&self) -> &S;
}

/// `Read` for the type and for a shared reference to it.
macro_rules! reads {
    ($ours:ident) => {
        $crate::waiting::convert::reads!(@for $ours);
        $crate::waiting::convert::reads!(@for &$ours);
    };
    (@for $reader:ty) => {
        impl std::io::Read for $reader {
            #[inline]
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                self.0.read(buf)
            }

            fn read_vectored(&mut self, bufs: &mut [std::io::IoSliceMut<'_>]) -> std::io::Result<usize> {
                self.0.read_vectored(bufs)
            }
        }
    };
}

/// `Write` for the type and for a shared reference to it.
macro_rules! writes {
    ($ours:ident) => {
        $crate::waiting::convert::writes!(@for $ours);
        $crate::waiting::convert::writes!(@for &$ours);
    };
    (@for $writer:ty) => {
        impl std::io::Write for $writer {
            #[inline]
            fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
                self.0.write(buf)
            }

            fn write_vectored(&mut self, bufs: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
                self.0.write_vectored(bufs)
            }

            #[inline]
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
    };
}

pub(crate) use {reads, writes};
