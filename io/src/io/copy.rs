//! Copying a stream into another.

#![forbid(unsafe_code)]

use std::io::{self, Read, Write};

/// The buffer that a copy begins with, and the one that it grows to.
const FIRST: usize = 8 << 10;
const MOST: usize = 64 << 10;

/// Reads all of `reader` into `writer`, and gives the number of bytes: std's [`copy`](std::io::copy).
///
/// The buffer grows from 8 to 64 KiB as long as reads fill it: for a file, every piece may be a way to the blocking pool
/// and back. The process copies; for what is left of a [`File`](crate::fs::File), its
/// [`copy_to`](crate::fs::File::copy_to) lets the kernel do it.
///
/// # Errors
///
/// Those of a read or a write, but for `Interrupted`; `WriteZero` if the writer takes nothing more.
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
