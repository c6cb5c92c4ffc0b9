//! Traits that convert between the types of this crate and those of std.

#![forbid(unsafe_code)]

use std::os::fd::AsFd;

/// The inner value of a type of this crate, which owns a value of std's type `S`.
pub(crate) trait Wraps<S: AsFd> {
    /// Takes a value in any mode.
    fn adopt(inner: S) -> Self;

    /// Deregisters, and returns std's value in the mode that the user has set.
    fn into_std(self) -> S;

    /// Returns the descriptor for the user, which may be cloned.
    fn expose(&self) -> &S;
}

/// Writes methods that call the method of their name on a part of the type.
macro_rules! forward {
    ($this:ident => $part:expr; $(
        $(#[$attribute:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty;
    )+) => {$(
        $(#[$attribute])*
        pub fn $name(&$this $(, $argument: $type)*) -> $output {
            $part.$name($($argument),*)
        }
    )+};
}

/// Implements `Read` for a type and a shared reference to it, by its only field.
macro_rules! reads {
    ($ours:ident) => {
        $crate::waiting::convert::reads!(@for $ours);
        $crate::waiting::convert::reads!(@for &$ours);
    };
    (@for $ours:ty) => {
        impl std::io::Read for $ours {
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

/// Implements `Read` for a type by the reader that an expression takes from it.
macro_rules! reads_through {
    ($ours:ty: $it:ident => $reader:expr) => {
        impl std::io::Read for $ours {
            #[inline]
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                let $it = self;
                $reader.read(buf)
            }

            fn read_vectored(&mut self, bufs: &mut [std::io::IoSliceMut<'_>]) -> std::io::Result<usize> {
                let $it = self;
                $reader.read_vectored(bufs)
            }

            fn read_exact(&mut self, buf: &mut [u8]) -> std::io::Result<()> {
                let $it = self;
                $reader.read_exact(buf)
            }

            fn read_to_end(&mut self, buf: &mut Vec<u8>) -> std::io::Result<usize> {
                let $it = self;
                $reader.read_to_end(buf)
            }

            fn read_to_string(&mut self, buf: &mut String) -> std::io::Result<usize> {
                let $it = self;
                $reader.read_to_string(buf)
            }
        }
    };
}

/// Implements `Write` for a type and a shared reference to it, by its only field.
///
/// Each implementation calls the field: through a reference `write_all` would not be inlined.
macro_rules! writes {
    ($ours:ident) => {
        $crate::waiting::convert::writes!(@for $ours);
        $crate::waiting::convert::writes!(@for &$ours);
    };
    (@for $ours:ty) => {
        impl std::io::Write for $ours {
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

/// Implements `Write` for a type by that of a shared reference to it.
macro_rules! writes_by_reference {
    ($ours:ty $(where $parameter:ident: $bound:ident)?) => {
        impl $(<$parameter: $bound>)? std::io::Write for $ours {
            #[inline]
            fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
                (&*self).write(buf)
            }

            fn write_vectored(&mut self, bufs: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
                (&*self).write_vectored(bufs)
            }

            fn write_all(&mut self, buf: &[u8]) -> std::io::Result<()> {
                (&*self).write_all(buf)
            }

            fn write_fmt(&mut self, args: std::fmt::Arguments<'_>) -> std::io::Result<()> {
                (&*self).write_fmt(args)
            }

            #[inline]
            fn flush(&mut self) -> std::io::Result<()> {
                (&*self).flush()
            }
        }
    };
}

pub(crate) use {forward, reads, reads_through, writes, writes_by_reference};
