//! `copy`: copies one stream into another.

#![forbid(unsafe_code)]

use std::io::{self, Read, Write};

/// Bytes of the buffer that a copy begins with.
const FIRST: usize = 8 << 10;
/// Bytes of the largest buffer that it grows to.
const MOST: usize = 64 << 10;

/// Copies all of `reader` into `writer`: [`std::io::copy`], for tasks.
///
/// Returns the number of bytes.
///
/// The bytes go through a buffer, which grows from 8 to 64 KiB as long as reads fill it. Between two files,
/// [`File::copy_to`](crate::fs::File::copy_to) lets the kernel copy.
///
/// # Cancellation
///
/// A cancellation point wherever the reader or the writer waits. What was written stays written; what was in the buffer
/// is lost.
///
/// # Errors
///
/// Those of a read or a write, except `Interrupted`; `WriteZero` if the writer takes nothing more. Timeouts and deadlines
/// of sockets and pipes apply.
///
/// # Examples
///
/// ```
/// let mut copied = Vec::new();
/// assert_eq!(fibra_io::io::copy(&mut &b"some bytes"[..], &mut copied)?, 10);
/// assert_eq!(copied, b"some bytes");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn copy<R, W>(reader: &mut R, writer: &mut W) -> io::Result<u64>
where
    R: Read + ?Sized,
    W: Write + ?Sized,
{
    let mut buffer = vec![0; FIRST];
    let mut copied = 0;
    loop {
        let n = match reader.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        writer.write_all(&buffer[..n])?;
        copied += n as u64;
        if n == buffer.len() && n < MOST {
            buffer.resize(2 * n, 0);
        }
    }
}
