//! Copies a file into another file or into a stream.

#![forbid(unsafe_code)]

use std::io;

use super::file::File;
use crate::io::copy;
use crate::net::{TcpStream, UnixStream};
use crate::sys::file::{copy_range, is_refusal};

/// Bytes that one call on the blocking pool copies: some milliseconds, after which a cancel is seen.
const PIECE: usize = 8 << 20;

mod sealed {
    pub trait Sealed {}
}

/// A target of [`File::copy_to`]: a file or a stream of [`net`](crate::net).
pub trait CopyTarget: sealed::Sealed {
    #[doc(hidden)]
    fn fill_from(&self, file: &File) -> io::Result<u64>;
}

impl sealed::Sealed for File {}
impl sealed::Sealed for TcpStream {}
impl sealed::Sealed for UnixStream {}

impl CopyTarget for File {
    fn fill_from(&self, file: &File) -> io::Result<u64> {
        let copied = copy_in_kernel(file, self)?;
        // The kernel refuses some pairs, and finds nothing in the files of some systems, as procfs.
        Ok(copied + copy(&mut &*file, &mut &*self)?)
    }
}

impl CopyTarget for TcpStream {
    fn fill_from(&self, file: &File) -> io::Result<u64> {
        copy(&mut &*file, &mut &*self)
    }
}

impl CopyTarget for UnixStream {
    fn fill_from(&self, file: &File) -> io::Result<u64> {
        copy(&mut &*file, &mut &*self)
    }
}

impl File {
    /// Copies the rest of the file into a file or a stream; returns the bytes copied.
    ///
    /// It begins at the position of the file.
    ///
    /// From file to file the kernel copies (`copy_file_range(2)`), as far as the file systems allow it. All else goes
    /// through a buffer, as [`io::copy`](fn@crate::io::copy) does.
    ///
    /// # Cancellation
    ///
    /// A cancellation point every few megabytes, and wherever the target makes it wait. What was written stays written.
    /// From file to file the position tells how much was copied; what was in a buffer is lost.
    ///
    /// # Errors
    ///
    /// Those of a read of the file and of a write to the target, timeouts and deadlines included.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Seek;
    /// use fibra_io::fs::{self, File};
    ///
    /// let path = std::env::temp_dir().join(format!("fibra-copy-to-{}", std::process::id()));
    /// let (from, to) = (path.with_extension("from"), path.with_extension("to"));
    /// fs::write(&from, b"some bytes")?;
    /// let mut file = File::open(&from)?;
    /// file.seek(std::io::SeekFrom::Start(5))?;
    /// assert_eq!(file.copy_to(&File::create(&to)?)?, 5);
    /// assert_eq!(fs::read(&to)?, b"bytes");
    /// # fs::remove_file(&from)?;
    /// # fs::remove_file(&to)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn copy_to<T: CopyTarget>(&self, target: &T) -> io::Result<u64> {
        target.fill_from(self)
    }
}

/// Copies as much as the kernel copies between these two files, and returns the number of bytes.
fn copy_in_kernel(from: &File, to: &File) -> io::Result<u64> {
    let (from, to) = (&from.0, &to.0);
    let mut copied = 0;
    if from.is_endless() || to.is_endless() {
        return Ok(copied);
    }
    loop {
        let piece = || copy_range(from.fd(), to.fd(), PIECE);
        match from.at_position(|| to.at_position(piece)) {
            Ok(0) => return Ok(copied),
            Ok(n) => copied += n as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_unfit(&error) => return Ok(copied),
            Err(error) => return Err(error),
        }
    }
}

/// Returns true if the kernel does not copy between two files: other file systems, or a target that is appended to.
fn is_unfit(error: &io::Error) -> bool {
    is_refusal(error) || matches!(error.raw_os_error(), Some(libc::EBADF | libc::ESPIPE | libc::EOVERFLOW))
}
