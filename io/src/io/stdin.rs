//! Standard input.
//!
//! One buffer for the whole process, and a lock that goes with it: the holder of the buffer has the
//! lock. A read that needs more input waits until there is some (`channel`), so a task that is
//! cancelled there has taken nothing; and what is read stays in the buffer until the operation that
//! asked for it is complete: a line until its end has come.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, BufRead, IoSliceMut, IsTerminal, Lines, Read};
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::buf_reader::BufReader;
use crate::sys::Direction;
use crate::waiting::convert::reads_through;
use crate::waiting::manual::ManualSource;
use crate::waiting::stream_file::{StreamFile, unless_closed};

static INPUT: LazyLock<Input> = LazyLock::new(|| Input {
    channel: StreamFile::patient(io::stdin()),
    buffer: Mutex::new(Some(BufReader::new(Channel))),
    returned: ManualSource::default(),
});

struct Input {
    channel: StreamFile<io::Stdin>,
    /// None while it is taken.
    buffer: Mutex<Option<BufReader<Channel>>>,
    returned: ManualSource,
}

impl Input {
    fn buffer(&self) -> MutexGuard<'_, Option<BufReader<Channel>>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads from the channel of the input, without a buffer.
struct Channel;

impl Read for Channel {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        unless_closed(INPUT.channel.read(&mut [IoSliceMut::new(buf)]), 0)
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
        StdinLock::of(buffer)
    }

    /// Takes the lock for an operation that may fail: it does in a task that must not wait.
    fn lock_to_read(&self) -> io::Result<StdinLock<'static>> {
        let take = || INPUT.buffer().take();
        let buffer = match take() {
            None => INPUT.returned.wait_or_fail(Direction::Read, None, take)?,
            taken => taken,
        };
        Ok(StdinLock::of(buffer))
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

reads_through!(&Stdin: stdin => stdin.lock_to_read()?);
reads_through!(Stdin: stdin => &*stdin);

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
    /// None in its destructor only.
    buffer: Option<BufReader<Channel>>,
    _lives: PhantomData<&'a ()>,
}

impl StdinLock<'_> {
    fn of(buffer: Option<BufReader<Channel>>) -> Self {
        assert!(buffer.is_some(), "a wait without a deadline does not run out");
        StdinLock { buffer, _lives: PhantomData }
    }

    fn reader(&mut self) -> &mut BufReader<Channel> {
        self.buffer.as_mut().expect("the lock has the buffer")
    }
}

reads_through!(StdinLock<'_>: lock => lock.reader());

impl BufRead for StdinLock<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader().fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.reader().consume(amount);
    }

    fn read_until(&mut self, byte: u8, buf: &mut Vec<u8>) -> io::Result<usize> {
        self.reader().read_until(byte, buf)
    }

    fn read_line(&mut self, buf: &mut String) -> io::Result<usize> {
        self.reader().read_line(buf)
    }
}

impl AsFd for StdinLock<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        INPUT.channel.fd()
    }
}

impl AsRawFd for StdinLock<'_> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Drop for StdinLock<'_> {
    fn drop(&mut self) {
        *INPUT.buffer() = self.buffer.take();
        INPUT.returned.notify(Direction::Read);
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
