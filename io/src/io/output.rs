//! Standard output and standard error, with their locks.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, IoSlice, IsTerminal, Write};
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::process::Stdio;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use fibra_runtime::wait;

use crate::sys;
use crate::sys::Direction;
use crate::waiting::convert::writes_by_reference;
use crate::waiting::manual::ManualSource;
use crate::waiting::stream_file::{StreamFile, unless_closed};

/// The standard output of the process, for tasks; see [`OutputStream`].
pub type Stdout = OutputStream<io::Stdout>;
/// The standard output, held by one; see [`OutputStream::lock`].
pub type StdoutLock<'a> = OutputLock<'a, io::Stdout>;
/// The standard error of the process, for tasks; see [`OutputStream`].
pub type Stderr = OutputStream<io::Stderr>;
/// The standard error, held by one; see [`OutputStream::lock`].
pub type StderrLock<'a> = OutputLock<'a, io::Stderr>;

/// Returns the standard output of the process: [`std::io::stdout`], for tasks.
///
/// # Examples
///
/// ```
/// use std::io::Write;
///
/// writeln!(fibra_io::io::stdout(), "a line in one piece, number {}", 1)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn stdout() -> Stdout {
    OutputStream(PhantomData)
}

/// Returns the standard error of the process: [`std::io::stderr`], for tasks.
///
/// # Examples
///
/// ```
/// use std::io::Write;
///
/// fibra_io::io::stderr().write_all(b"something is wrong\n")?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn stderr() -> Stderr {
    OutputStream(PhantomData)
}

/// The standard output or the standard error of the process.
///
/// It is made by [`stdout`] and [`stderr`].
///
/// A task that writes without a reader sleeps, where `print!` blocks the thread.
///
/// # Differences from std
///
/// * The standard output has no buffer either: a write hands its bytes to the system, and nothing is
///   lost when the process ends. `write!` and `writeln!` write all of their text at once; use
///   [`LineWriter`](io::LineWriter) for many small pieces. An unfinished line that `print!` keeps in
///   std's buffer comes later.
/// * [`write_all`](Write::write_all), `write!` and `writeln!` hold the lock, so their texts do not
///   mix; a single [`write`](Write::write) may be short.
/// * After `dup2` replaces the stream that was used before, a task may wait for the old file.
/// * A panic hook locks the stream as its task does, which may have locked it already. It blocks the
///   thread while another task holds the lock, for ever if that is a task of its worker. So write to
///   std's streams in a hook.
/// * A task waits also where the stream was made non-blocking, which in std fails with `WouldBlock`.
///
/// # Cancellation
///
/// Every wait is a cancellation point, also that for the lock. A task that unwinds from a
/// cancellation waits for no reader, nor for the owner of the lock: its writes fail with
/// `TimedOut`. So do those in destructors that end a cancelled task.
pub struct OutputStream<S>(PhantomData<fn(S) -> S>);

/// Locks an output for one task or thread; made by [`OutputStream::lock`].
///
/// Its holder may hold several.
pub struct OutputLock<'a, S: OutputKind> {
    output: &'a Output<S>,
    /// It belongs to the task that has taken it.
    not_send: PhantomData<*const ()>,
}

/// One of std's two.
#[expect(private_bounds, reason = "the outputs themselves are private")]
pub trait OutputKind: AsFd + IsTerminal + HasOutput + Sized + 'static {}

impl OutputKind for io::Stdout {}
impl OutputKind for io::Stderr {}

/// Keeps the trait ours.
trait HasOutput: AsFd + Sized {
    fn output() -> &'static Output<Self>;
}

impl HasOutput for io::Stdout {
    fn output() -> &'static Output<io::Stdout> {
        static OUTPUT: LazyLock<Output<io::Stdout>> = LazyLock::new(|| Output::new(io::stdout()));
        &OUTPUT
    }
}

impl HasOutput for io::Stderr {
    fn output() -> &'static Output<io::Stderr> {
        static OUTPUT: LazyLock<Output<io::Stderr>> = LazyLock::new(|| Output::new(io::stderr()));
        &OUTPUT
    }
}

/// The descriptor, and its holder.
struct Output<S: AsFd> {
    file: StreamFile<S>,
    holder: Mutex<Holder>,
    released: ManualSource,
}

/// The holder of an output, and how many times it holds it.
#[derive(Default)]
struct Holder {
    owner: Option<NonZeroU64>,
    times: usize,
}

impl<S: AsFd> Output<S> {
    fn new(inner: S) -> Output<S> {
        Output {
            file: StreamFile::patient(inner),
            holder: Mutex::default(),
            released: ManualSource::default(),
        }
    }

    fn holder(&self) -> MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other task or thread has it.
    fn acquire(&self) {
        let held = self.released.wait(Direction::Read, None, || self.try_acquire());
        held.expect("a wait without a deadline does not run out");
    }

    fn try_acquire(&self) -> Option<()> {
        // A hook that tells of its task's panic may find that the task has the stream.
        let me = wait::owner_in_hook();
        let mut holder = self.holder();
        let is_mine = *holder.owner.get_or_insert(me) == me;
        holder.times += usize::from(is_mine);
        is_mine.then_some(())
    }

    /// Lets others have it, if it was taken once only.
    fn release(&self) {
        {
            let mut holder = self.holder();
            holder.times -= 1;
            if holder.times > 0 {
                return;
            }
            holder.owner = None;
        }
        self.released.notify(Direction::Read);
    }
}

impl<S: OutputKind> OutputStream<S> {
    /// Waits until no other caller has the stream, and takes it.
    ///
    /// The caller has it for as long as the guard lives, and may take it again. A task that
    /// unwinds from a cancellation waits, too.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Write;
    /// use fibra_io::io::{StderrLock, StdoutLock, stderr, stdout};
    ///
    /// let mut held: StdoutLock<'_> = stdout().lock();
    /// writeln!(held, "no other task")?;
    /// writeln!(stdout().lock(), "writes in between")?;
    /// let errors: StderrLock<'_> = stderr().lock();
    /// assert_eq!(stderr().is_terminal(), fibra_io::io::IsTerminal::is_terminal(&errors));
    /// assert_eq!(stdout().is_terminal(), fibra_io::io::IsTerminal::is_terminal(&held));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn lock(&self) -> OutputLock<'static, S> {
        let output = S::output();
        output.acquire();
        OutputLock { output, not_send: PhantomData }
    }

    /// Takes the lock for an operation that may fail: it does in a task that must not wait.
    fn lock_to_write(&self) -> io::Result<OutputLock<'static, S>> {
        let output = S::output();
        if output.try_acquire().is_none() {
            output.released.wait_or_fail(Direction::Read, None, || output.try_acquire())?;
        }
        Ok(OutputLock { output, not_send: PhantomData })
    }

    /// Returns true if it is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        S::output().file.fd().is_terminal()
    }
}

impl<S: OutputKind> Write for OutputLock<'_, S> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        unless_closed(self.output.file.write(bufs), sys::total(bufs))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn write_fmt(&mut self, args: fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(fmt::format(args).as_bytes())
    }
}

impl<S: OutputKind> Write for &OutputStream<S> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.lock_to_write()?.write(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.lock_to_write()?.write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn write_all(&mut self, buf: &[u8]) -> io::Result<()> {
        self.lock_to_write()?.write_all(buf)
    }

    fn write_fmt(&mut self, args: fmt::Arguments<'_>) -> io::Result<()> {
        // Before the lock is taken: users' code makes the text.
        self.write_all(fmt::format(args).as_bytes())
    }
}

writes_by_reference!(OutputStream<S> where S: OutputKind);

impl<S: OutputKind> Drop for OutputLock<'_, S> {
    fn drop(&mut self) {
        self.output.release();
    }
}

impl<S: OutputKind> AsFd for OutputStream<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        S::output().file.fd()
    }
}

impl<S: OutputKind> AsRawFd for OutputStream<S> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<S: OutputKind> AsFd for OutputLock<'_, S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.output.file.fd()
    }
}

impl<S: OutputKind> AsRawFd for OutputLock<'_, S> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl From<Stdout> for Stdio {
    /// For a child that writes to the standard output, whichever of its streams this is.
    fn from(_: Stdout) -> Stdio {
        io::stdout().into()
    }
}

impl From<Stderr> for Stdio {
    /// For a child that writes to the standard error, whichever of its streams this is.
    fn from(_: Stderr) -> Stdio {
        io::stderr().into()
    }
}

// As std's. Nothing is kept between two calls.
impl<S: OutputKind> UnwindSafe for OutputLock<'_, S> {}
impl<S: OutputKind> RefUnwindSafe for OutputLock<'_, S> {}

impl<S> fmt::Debug for OutputStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputStream").finish_non_exhaustive()
    }
}

impl<S: OutputKind> fmt::Debug for OutputLock<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputLock").finish_non_exhaustive()
    }
}
