//! `BufReader`: a buffered reader that keeps what an interrupted operation has read.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, BufRead, ErrorKind, Read, Seek, SeekFrom};

/// Bytes that a reader asks for at once, unless told otherwise.
const CAPACITY: usize = 8 << 10;

/// Buffers a reader and keeps what an operation that ends early has read.
///
/// It is [`std::io::BufReader`], except that [`read_line`](BufRead::read_line) and its neighbours take
/// bytes out of the buffer only when they have all that they were asked for.
///
/// # Cancellation
///
/// A cancellation point wherever the inner reader waits. An operation that a `timeout`, a cancel or an
/// error ends has taken nothing: its target is as it was, and all bytes are in the buffer. To resume, make
/// the same call again on the same `BufReader`. It goes on with the bytes in the buffer.
///
/// | operation | keeps until it is complete |
/// | --- | --- |
/// | `fill_buf`, `read` | nothing: one read of the inner reader is complete, or has taken nothing |
/// | `read_until`, `read_line`, `lines`, `split` | the begin of the line |
/// | `read_exact` | the bytes that have come, however many are asked for |
/// | `read_to_end`, `read_to_string` | all that has come |
///
/// An adapter such as [`Take`](io::Take) reads by `fill_buf` and has its own `read_line`, which loses the
/// begin of a line as std's does.
///
/// # Differences from std
///
/// * Std's `read_until` puts the begin into its `Vec`, where the next call goes on. Its `read_line` drops
///   the begin, and `lines` drops the `String` that has it.
/// * The buffer grows while an operation needs it, and shrinks when it is empty. So a line without an end
///   takes memory here before it is given out.
/// * A line that is not UTF-8 is consumed.
///
/// # Examples
///
/// ```
/// use std::io::{BufRead, Write};
/// use std::time::Duration;
/// use fibra_io::io::{BufReader, pipe};
///
/// # fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?.run(|| -> std::io::Result<()> {
/// let (reader, mut writer) = pipe()?;
/// let (mut reader, mut line) = (BufReader::new(reader), String::new());
/// writer.write_all(b"half of ")?;
/// let ended = fibra_runtime::timeout(Duration::from_millis(5), || reader.read_line(&mut line));
/// assert!(ended.is_err() && line.is_empty());
///
/// writer.write_all(b"a line\n")?;
/// reader.read_line(&mut line)?;
/// assert_eq!(line, "half of a line\n");
/// # Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct BufReader<R: ?Sized> {
    /// Initialized; the bytes from `start` to `end` were read and not yet asked for.
    room: Vec<u8>,
    start: usize,
    end: usize,
    capacity: usize,
    inner: R,
}

impl<R> BufReader<R> {
    /// Wraps a reader, which is asked for 8 KiB at once.
    pub fn new(inner: R) -> BufReader<R> {
        BufReader::with_capacity(CAPACITY, inner)
    }

    /// Wraps a reader, which is asked for `capacity` bytes at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::BufRead;
    /// use fibra_io::io::BufReader;
    ///
    /// let mut reader = BufReader::with_capacity(4, &b"some bytes"[..]);
    /// assert_eq!(reader.fill_buf()?, b"some");
    /// assert_eq!(reader.buffer(), b"some");
    /// assert_eq!((reader.capacity(), reader.get_ref()), (4, &&b" bytes"[..]));
    /// assert_eq!(reader.into_inner(), b" bytes");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn with_capacity(capacity: usize, inner: R) -> BufReader<R> {
        BufReader { room: Vec::new(), start: 0, end: 0, capacity, inner }
    }

    /// Returns the reader. What is in the buffer is lost.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: ?Sized> BufReader<R> {
    /// Returns the reader. What is read from it directly skips the buffer.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Returns the reader for changes. What is read from it directly skips the buffer.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Returns what was read and not yet asked for.
    pub fn buffer(&self) -> &[u8] {
        &self.room[self.start..self.end]
    }

    /// Returns how many bytes the reader is asked for at once.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    fn discard(&mut self) {
        (self.start, self.end) = (0, 0);
        // What a long line has taken.
        self.room.truncate(self.capacity);
        self.room.shrink_to(self.capacity);
    }

    /// Takes out the first `n` bytes.
    fn move_to(&mut self, to: &mut Vec<u8>, n: usize) {
        to.extend_from_slice(&self.buffer()[..n]);
        self.consume_bytes(n);
    }

    /// Takes out the first `n` bytes as text.
    fn move_text(&mut self, to: &mut String, n: usize) -> io::Result<usize> {
        let text = std::str::from_utf8(&self.buffer()[..n]).map(|text| to.push_str(text));
        self.consume_bytes(n);
        match text {
            Ok(()) => Ok(n),
            Err(_) => Err(io::Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8")),
        }
    }

    fn consume_bytes(&mut self, n: usize) {
        self.start = self.end.min(self.start.saturating_add(n));
        if self.start == self.end {
            self.discard();
        }
    }

    /// Makes room for at least one more byte behind `end`.
    fn make_room(&mut self) {
        if self.end < self.room.len() {
            return;
        }
        if self.start > 0 {
            self.room.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        // At least as much as is kept, so that a long line is not moved for each piece.
        let wanted = self.end + self.end.max(self.capacity).max(1);
        if self.end * 2 > self.room.len() || self.room.is_empty() {
            self.room.resize(wanted, 0);
        }
    }
}

impl<R: Read + ?Sized> BufReader<R> {
    /// Reads more. Returns false at the end of the input, which for a terminal may not be the last word.
    fn read_more(&mut self) -> io::Result<bool> {
        self.make_room();
        loop {
            // If it unwinds, `end` says that nothing has come.
            match self.inner.read(&mut self.room[self.end..]) {
                Ok(n) => {
                    self.end += n;
                    return Ok(n > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads to the end of the input, and returns how many bytes the buffer has then.
    fn read_all(&mut self) -> io::Result<usize> {
        while self.read_more()? {}
        Ok(self.buffer().len())
    }

    /// Reads up to a delimiter or the end, and returns how far that is.
    fn find(&mut self, delimiter: u8) -> io::Result<usize> {
        let mut seen = 0;
        loop {
            let buffer = self.buffer();
            if let Some(place) = buffer[seen..].iter().position(|byte| *byte == delimiter) {
                return Ok(seen + place + 1);
            }
            seen = buffer.len();
            if !self.read_more()? {
                return Ok(seen);
            }
        }
    }
}

impl<R: Read + ?Sized> Read for BufReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.buffer().is_empty() && buf.len() >= self.capacity {
            return self.inner.read(buf);
        }
        let n = self.fill_buf()?.read(buf)?;
        self.consume(n);
        Ok(n)
    }

    fn read_exact(&mut self, buf: &mut [u8]) -> io::Result<()> {
        while self.buffer().len() < buf.len() {
            if !self.read_more()? {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "failed to fill whole buffer"));
            }
        }
        buf.copy_from_slice(&self.buffer()[..buf.len()]);
        self.consume(buf.len());
        Ok(())
    }

    fn read_to_end(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        let n = self.read_all()?;
        self.move_to(buf, n);
        Ok(n)
    }

    fn read_to_string(&mut self, buf: &mut String) -> io::Result<usize> {
        let n = self.read_all()?;
        self.move_text(buf, n)
    }
}

impl<R: Read + ?Sized> BufRead for BufReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.buffer().is_empty() {
            self.read_more()?;
        }
        Ok(self.buffer())
    }

    fn consume(&mut self, amount: usize) {
        self.consume_bytes(amount);
    }

    fn read_until(&mut self, byte: u8, buf: &mut Vec<u8>) -> io::Result<usize> {
        let n = self.find(byte)?;
        self.move_to(buf, n);
        Ok(n)
    }

    fn read_line(&mut self, buf: &mut String) -> io::Result<usize> {
        let n = self.find(b'\n')?;
        self.move_text(buf, n)
    }
}

impl<R: Seek + ?Sized> Seek for BufReader<R> {
    /// Seeks in the reader, and discards the buffer if that succeeds.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Current(by) => {
                // Never that large in memory.
                let ahead = self.buffer().len() as i64;
                match by.checked_sub(ahead) {
                    Some(by) => SeekFrom::Current(by),
                    None => {
                        self.inner.seek(SeekFrom::Current(-ahead))?;
                        self.discard();
                        SeekFrom::Current(by)
                    }
                }
            }
            to => to,
        };
        let place = self.inner.seek(to)?;
        self.discard();
        Ok(place)
    }
}

impl<R: fmt::Debug + ?Sized> fmt::Debug for BufReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buffer = format_args!("{}/{}", self.buffer().len(), self.capacity);
        f.debug_struct("BufReader").field("reader", &&self.inner).field("buffer", &buffer).finish()
    }
}
