//! Standard input.
//!
//! One buffer for the whole process, and a lock that goes with it: the holder of the buffer has the
//! lock. A read that needs more input waits until there is some (`channel`), so a task that is
//! cancelled there has taken nothing; and what is read stays in the buffer until the operation that
//! asked for it is complete: a line until its end has come.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, BufRead, ErrorKind, IoSliceMut, IsTerminal, Lines, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::sys::Direction;
use crate::waiting::convert::reads_by_reference;
use crate::waiting::manual::ManualSource;
use crate::waiting::stream_file::{StreamFile, unless_closed};

/// Bytes that one read asks for.
const PIECE: usize = 8 << 10;

static INPUT: LazyLock<Input> = LazyLock::new(|| Input {
    channel: StreamFile::patient(io::stdin()),
    buffer: Mutex::new(Some(Buffer::default())),
    returned: ManualSource::default(),
});

struct Input {
    channel: StreamFile<io::Stdin>,
    /// None while it is taken.
    buffer: Mutex<Option<Buffer>>,
    returned: ManualSource,
}

impl Input {
    fn buffer(&self) -> MutexGuard<'_, Option<Buffer>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was read and not yet asked for.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// So many of them are used up.
    start: usize,
}

impl Buffer {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Returns the room of what is used up to what comes next.
    fn forget_used(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
    }

    fn consume(&mut self, n: usize) {
        self.start = self.bytes.len().min(self.start + n);
        if self.start == self.bytes.len() {
            self.bytes.clear();
            // What a long line has taken.
            self.bytes.shrink_to(PIECE);
            self.start = 0;
        }
    }

    /// Takes out the first `n` bytes.
    fn move_to(&mut self, to: &mut Vec<u8>, n: usize) {
        to.extend_from_slice(&self.rest()[..n]);
        self.consume(n);
    }
}

/// Returns the standard input of the process: [`std::io::stdin`], for tasks.
///
/// # Examples
///
/// ```no_run
/// use std::io::BufRead;
///
/// for line in fibra_io::io::stdin().lock().lines() {
///     println!("read {}", line?);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn stdin() -> Stdin {
    Stdin(())
}

/// The standard input of the process; made by [`stdin`](fn@stdin).
///
/// All handles share one buffer, which std's `stdin` does not know of: use one of the two in a process.
///
/// # Cancellation
///
/// Waiting for input is a cancellation point, and so is waiting for the lock. No byte is lost: an
/// operation that is cut short has taken nothing, and the next one finds all of it. There are two
/// exceptions. Another process may take input from this terminal or FIFO at that moment. And
/// [`read_to_end`](Read::read_to_end) and the like *through adapters* keep what they have read.
///
/// A task that unwinds from a cancellation waits for no input, nor for the owner of the lock: its
/// reads fail with `TimedOut`. So do those in destructors that end a cancelled task.
///
/// # Differences from std
///
/// A task waits also where the stream was made non-blocking, which in std fails with `WouldBlock`.
/// A file that takes the place of the stream (`dup2`) after its first use is not waited for
/// properly: a task may go on to wait for the former.
#[derive(Debug)]
pub struct Stdin(());

impl Stdin {
    /// Waits until no other caller has the input, and takes it until the guard drops.
    ///
    /// # Deadlocks
    ///
    /// If this task has it already. A task that unwinds from a cancellation waits, too.
    pub fn lock(&self) -> StdinLock<'static> {
        let buffer = INPUT.returned.wait(Direction::Read, None, || INPUT.buffer().take());
        StdinLock { input: &INPUT, buffer: buffer.expect("a wait without a deadline does not run out") }
    }

    /// Takes the lock for an operation that may fail: it does in a task that must not wait.
    fn lock_to_read(&self) -> io::Result<StdinLock<'static>> {
        let take = || INPUT.buffer().take();
        let buffer = match take() {
            None => INPUT.returned.wait_or_fail(Direction::Read, None, take)?,
            taken => taken,
        };
        Ok(StdinLock { input: &INPUT, buffer: buffer.expect("a wait without a deadline does not run out") })
    }

    /// Appends a line with its newline: [`BufRead::read_line`] under the lock.
    ///
    /// # Errors
    ///
    /// What the system says, and `InvalidData` if it is not UTF-8.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use fibra_io::io::stdin;
    ///
    /// if stdin().is_terminal() {
    ///     eprintln!("one line, please");
    /// }
    /// let mut line = String::new();
    /// let read = stdin().read_line(&mut line)?;
    /// assert_eq!(read, line.len());
    /// for line in stdin().lines() {
    ///     println!("another one: {}", line?);
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_line(&self, buf: &mut String) -> io::Result<usize> {
        self.lock_to_read()?.read_line(buf)
    }

    /// Returns an iterator over the lines, which holds the lock.
    pub fn lines(self) -> Lines<StdinLock<'static>> {
        self.lock().lines()
    }

    /// Returns true if it is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        INPUT.channel.fd().is_terminal()
    }
}

impl Read for &Stdin {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.lock_to_read()?.read(buf)
    }

    fn read_exact(&mut self, buf: &mut [u8]) -> io::Result<()> {
        self.lock_to_read()?.read_exact(buf)
    }

    fn read_to_end(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        self.lock_to_read()?.read_to_end(buf)
    }

    fn read_to_string(&mut self, buf: &mut String) -> io::Result<usize> {
        self.lock_to_read()?.read_to_string(buf)
    }
}

reads_by_reference!(Stdin);

impl AsFd for Stdin {
    fn as_fd(&self) -> BorrowedFd<'_> {
        INPUT.channel.fd()
    }
}

impl AsRawFd for Stdin {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Holds the standard input for itself: made by [`Stdin::lock`].
pub struct StdinLock<'a> {
    input: &'a Input,
    buffer: Buffer,
}

impl StdinLock<'_> {
    /// Waits for more input. False at its end, which for a terminal may not be the last word.
    fn read_more(&mut self) -> io::Result<bool> {
        self.buffer.forget_used();
        let mut piece = [0; PIECE];
        loop {
            match unless_closed(self.input.channel.read(&mut [IoSliceMut::new(&mut piece)]), 0) {
                Ok(n) => {
                    self.buffer.bytes.extend_from_slice(&piece[..n]);
                    return Ok(n > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until all input has come, and tells how much that is.
    fn read_all(&mut self) -> io::Result<usize> {
        while self.read_more()? {}
        Ok(self.buffer.rest().len())
    }

    /// Waits for a delimiter or the end, and tells how far that is.
    fn find(&mut self, delimiter: u8) -> io::Result<usize> {
        let mut seen = 0;
        loop {
            let rest = self.buffer.rest();
            if let Some(place) = rest[seen..].iter().position(|byte| *byte == delimiter) {
                return Ok(seen + place + 1);
            }
            seen = rest.len();
            if !self.read_more()? {
                return Ok(seen);
            }
        }
    }

    /// Takes out the first `n` bytes as text.
    fn move_text(&mut self, to: &mut String, n: usize) -> io::Result<usize> {
        let text = std::str::from_utf8(&self.buffer.rest()[..n]).map(|text| to.push_str(text));
        self.buffer.consume(n);
        match text {
            Ok(()) => Ok(n),
            Err(_) => Err(io::Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8")),
        }
    }
}

impl Read for StdinLock<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(buf)?;
        self.consume(n);
        Ok(n)
    }

    fn read_exact(&mut self, buf: &mut [u8]) -> io::Result<()> {
        while self.buffer.rest().len() < buf.len() {
            if !self.read_more()? {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "failed to fill whole buffer"));
            }
        }
        buf.copy_from_slice(&self.buffer.rest()[..buf.len()]);
        self.consume(buf.len());
        Ok(())
    }

    fn read_to_end(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        let n = self.read_all()?;
        self.buffer.move_to(buf, n);
        Ok(n)
    }

    fn read_to_string(&mut self, buf: &mut String) -> io::Result<usize> {
        let n = self.read_all()?;
        self.move_text(buf, n)
    }
}

impl BufRead for StdinLock<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.buffer.rest().is_empty() {
            self.read_more()?;
        }
        Ok(self.buffer.rest())
    }

    fn consume(&mut self, amount: usize) {
        self.buffer.consume(amount);
    }

    fn read_until(&mut self, byte: u8, buf: &mut Vec<u8>) -> io::Result<usize> {
        let n = self.find(byte)?;
        self.buffer.move_to(buf, n);
        Ok(n)
    }

    fn read_line(&mut self, buf: &mut String) -> io::Result<usize> {
        let n = self.find(b'\n')?;
        self.move_text(buf, n)
    }
}

impl AsFd for StdinLock<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.channel.fd()
    }
}

impl AsRawFd for StdinLock<'_> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Drop for StdinLock<'_> {
    fn drop(&mut self) {
        *self.input.buffer() = Some(std::mem::take(&mut self.buffer));
        self.input.returned.notify(Direction::Read);
    }
}

// As std's: an operation that is cut short has taken nothing.
impl UnwindSafe for StdinLock<'_> {}
impl RefUnwindSafe for StdinLock<'_> {}

impl fmt::Debug for StdinLock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdinLock").finish_non_exhaustive()
    }
}
