//! A dump before the process aborts: how the thread that aborts asks another one for it.
//!
//! ```text
//!  the thread that aborts, in a handler of SIGABRT        the thread that dumps
//!  writes a byte ────────────────────────────────────▶   reads it
//!  waits until there is an answer, at most ten seconds    dumps
//!                ◀────────────────────────────────────    writes a byte
//!  sets the previous action, and raises the signal again
//! ```
//!
//! A handler must not allocate or lock, so it does no more than this. The answer is never read: one serves all threads that
//! abort.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::mem;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};

use crate::base::clock;
use crate::base::sigaction::{block, change, handle_by, keeping_errno};
use crate::base::sys;

/// How long an abort waits for the dump.
const PATIENCE: Duration = Duration::from_secs(10);

struct Request {
    ask: PipeWriter,
    answer: PipeReader,
    /// The thread that dumps is not in a forked process.
    process: Pid,
    /// The action of SIGABRT before.
    previous: libc::sigaction,
    /// The first thread that waits in the handler, while it does, and the address of the context that a signal has
    /// interrupted there: this one, or a fault that is about to abort.
    waiting: AtomicI32,
    context: AtomicUsize,
}

static REQUEST: OnceLock<Request> = OnceLock::new();

/// The thread that dumps, once it does, as [`own_handle`] names it; else 0.
static DUMPER: AtomicUsize = AtomicUsize::new(0);

/// Has a thread call `dump` once when the process is to abort, by SIGABRT. Later calls change nothing.
///
/// # Errors
/// Where a pipe, a thread or the action of the signal cannot be had.
pub(crate) fn install(dump: impl FnOnce() + Send + 'static) -> io::Result<()> {
    if REQUEST.get().is_some() {
        return Ok(());
    }
    let ((mut asked, ask), (answer, mut answered)) = (io::pipe()?, io::pipe()?);
    let wait_and_dump = move || {
        // A signal to the process is left to threads that can wait for this one.
        block(libc::SIGABRT);
        // It retries an interrupted read by itself, and fails if no handler comes to ask.
        if asked.read_exact(&mut [0]).is_ok() {
            // Other threads that abort write to the pipe, also when this one has ended.
            mem::forget(asked);
            // Relaxed: this thread alone finds itself there.
            DUMPER.store(own_handle(), Ordering::Relaxed);
            dump();
            _ = answered.write_all(&[0]);
        }
    };
    thread::Builder::new().name("fibra-abort-dump".to_owned()).spawn(wait_and_dump)?;
    // SAFETY: none is set.
    let previous = unsafe { change(libc::SIGABRT, None) }?;
    let request = Request {
        ask,
        answer,
        process: getpid(),
        previous,
        waiting: AtomicI32::new(0),
        context: AtomicUsize::new(0),
    };
    if REQUEST.set(request).is_err() {
        return Ok(());
    }
    // SAFETY: the handler writes and waits by calls of the system, loads and stores atomics, reads the clock, and calls
    // `pthread_self`, `sigaction` and `raise`: all of it is async-signal-safe.
    unsafe { handle_by(libc::SIGABRT, handle) }
}

/// Has the dump before an abort show the calling thread in this context, a `ucontext_t`, not in the handler that is to abort.
/// Async-signal-safe.
pub(crate) fn leave(context: usize) {
    if let Some(request) = REQUEST.get() {
        request.leave(context);
    }
}

/// Returns the address of the context, a `ucontext_t`, that a thread has left for the handler in which it waits.
pub fn left_at(thread: i32) -> Option<usize> {
    let request = REQUEST.get()?;
    // Acquire: pairs with the Release in the handler.
    (request.waiting.load(Ordering::Acquire) == thread).then(|| request.context.load(Ordering::Relaxed))
}

/// Returns what the threads library calls the calling thread, which is never 0. Async-signal-safe.
fn own_handle() -> usize {
    // SAFETY: no precondition.
    (unsafe { libc::pthread_self() }) as usize
}

extern "C" fn handle(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(request) = REQUEST.get() else { return };
    keeping_errno(|| request.ask(context.expose_provenance()));
    // SAFETY: the action that was in force before, which the program had set.
    _ = unsafe { change(libc::SIGABRT, Some(&request.previous)) };
    // SAFETY: no precondition. The signal is blocked here, and is delivered when the handler returns.
    unsafe { libc::raise(libc::SIGABRT) };
}

impl Request {
    /// Leaves the context to the dump. Returns false if there is one.
    fn leave(&self, context: usize) -> bool {
        // Relaxed: one thread alone changes both, before any other reads the context.
        let is_first =
            self.context.compare_exchange(0, context, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_first {
            // Release: pairs with the Acquire in `left_at`.
            self.waiting.store(sys::thread_id().unwrap_or(0), Ordering::Release);
        }
        is_first
    }

    /// Asks for the dump, and waits for it.
    fn ask(&self, context: usize) {
        // Relaxed: the handle of this thread can only have been stored by itself.
        if DUMPER.load(Ordering::Relaxed) == own_handle() || self.process != getpid() {
            return;
        }
        let is_first = self.leave(context);
        _ = rustix::io::write(&self.ask, &[0]);
        self.wait();
        if is_first {
            // The process may go on, by a handler of its own. Relaxed: publishes nothing.
            self.waiting.store(0, Ordering::Relaxed);
        }
    }

    /// Waits until there is an answer.
    fn wait(&self) {
        let deadline = clock::machine() + PATIENCE;
        let poll_once = || {
            let left = Timespec::try_from(deadline.saturating_duration_since(clock::machine())).ok();
            poll(&mut [PollFd::new(&self.answer, PollFlags::IN)], left.as_ref())
        };
        // The dump samples this thread by a signal.
        while poll_once() == Err(Errno::INTR) {}
    }
}
