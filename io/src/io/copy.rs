//! Copying a stream into another.

use std::cell::Cell;
use std::io::{self, Read, Write};

use self::behind::{behind_reader, behind_writer, pass_reader};
pub(crate) use self::kernel::Pages;
use self::kernel::Route;

mod behind;
mod kernel;
#[cfg(test)]
mod tests;

/// The buffer that a copy begins with, and the one that it grows to.
const FIRST: usize = 8 << 10;
const MOST: usize = 64 << 10;

/// Reads all of `reader` into `writer`, and gives the number of bytes: std's [`copy`](std::io::copy).
///
/// On Linux the kernel copies where it can, and nothing is brought into the process:
///
/// | from | into | by |
/// | --- | --- | --- |
/// | a [`File`](crate::fs::File) on a disk | another one | `copy_file_range(2)`, or `sendfile(2)` from one file system to another |
/// | a pipe | a pipe, a [`TcpStream`](crate::net::TcpStream) or [`UnixStream`](crate::net::UnixStream), a file on a disk | `splice(2)` |
/// | a stream | a pipe | `splice(2)` |
///
/// A pipe is a [`PipeReader`](crate::io::PipeReader), a [`PipeWriter`](crate::io::PipeWriter) or a stream of a
/// [`Child`](crate::process::Child). References to all of these are as good, and so are they in a
/// [`BufReader`](io::BufReader) or a [`Take`](io::Take), one of each at most, or a [`BufWriter`](io::BufWriter), which is
/// flushed first, and mutable references to those; but not in a `Box`, nor as a `dyn Read` or `dyn Write`. The locks of the standard streams are copied as all
/// else is, and as what the kernel refuses: through a buffer, which grows from 8 to 64 KiB as long as reads fill it, since for
/// a file every piece may be a way to the blocking pool and back.
///
/// While the kernel copies, the descriptor of a stream is non-blocking, for whoever has a clone of it that we have not
/// made. A mode that [`set_nonblocking`](crate::net::TcpStream::set_nonblocking) asks for meanwhile is set when the copy ends.
/// Several copies may use one socket at once, through handles that [`try_clone`](crate::net::TcpStream::try_clone) has made:
/// the last one gives the mode back. Through descriptors that were cloned in another way they know nothing of each other, and
/// the socket may stay non-blocking when they have ended. And a `SIGPIPE` comes to a process that does not ignore it; programs in Rust do.
///
/// # Cancellation
///
/// A cancellation point wherever the reader or the writer waits, and every few megabytes where the kernel copies files.
/// What has been written stays written. Where the kernel copies, nothing is lost then: the position of a file and the limit of
/// a `Take` tell how much has gone. What was in a buffer is lost.
///
/// # Errors
///
/// Those of a read or a write, but for `Interrupted`; `WriteZero` if the writer takes nothing more. Timeouts and deadlines of
/// sockets and pipes hold here too.
///
/// From a file into a socket it copies by a buffer, as std's does: the kernel would send the pages of the file themselves, and
/// what is changed in the file afterwards could show at the other end. Who does not mind has
/// [`File::copy_to`](crate::fs::File::copy_to).
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
    copy_with(reader, writer, Pages::Copied)
}

/// The same, for who may lend the pages of a file.
pub(crate) fn copy_with<R, W>(reader: &mut R, writer: &mut W, pages: Pages) -> io::Result<u64>
where
    R: Read + ?Sized,
    W: Write + ?Sized,
{
    let carried = by_kernel(reader, writer, pages)?;
    Ok(carried + by_buffer(reader, writer, u64::MAX)?)
}

/// Copies what the kernel can copy. The rest, if there is one, is for the buffer.
fn by_kernel<R, W>(reader: &mut R, writer: &mut W, pages: Pages) -> io::Result<u64>
where
    R: Read + ?Sized,
    W: Write + ?Sized,
{
    let (Some(from), Some(to)) = (behind_reader(reader), behind_writer(writer)) else { return Ok(0) };
    let route = Route::between(from.end(), to.end(), pages);
    if route.ways.is_empty() {
        return Ok(0);
    }
    let ahead = from.ahead() as u64;
    let ahead = by_buffer(reader, writer, ahead)?;
    writer.flush()?;
    let passage = Passage { reader, bytes: Cell::new(0) };
    if let (Some(from), Some(to)) = (behind_reader(&*passage.reader), behind_writer(writer)) {
        route.carry(from.end(), to.end(), from.left(), &passage.bytes)?;
    }
    Ok(ahead + passage.bytes.get())
}

/// Tells the reader what has passed by it, however a copy ends.
struct Passage<'a, R: Read + ?Sized> {
    reader: &'a mut R,
    bytes: Cell<u64>,
}

impl<R: Read + ?Sized> Drop for Passage<'_, R> {
    fn drop(&mut self) {
        pass_reader(self.reader, self.bytes.get());
    }
}

/// Copies up to `most` bytes through the process.
fn by_buffer<R, W>(reader: &mut R, writer: &mut W, most: u64) -> io::Result<u64>
where
    R: Read + ?Sized,
    W: Write + ?Sized,
{
    let mut buffer = Vec::new();
    let mut copied = 0;
    while copied < most {
        if buffer.is_empty() {
            buffer.resize(FIRST, 0);
        }
        let len = usize::try_from(most - copied).map_or(buffer.len(), |left| left.min(buffer.len()));
        let n = match reader.read(&mut buffer[..len]) {
            Ok(0) => break,
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
    Ok(copied)
}
