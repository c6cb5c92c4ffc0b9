//! A runtime as a value: its owner runs closures on it and ends it.

#![forbid(unsafe_code)]

use std::fmt;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::thread;
use std::time::Duration;

use crate::blocking::pool::Pool;
use crate::runtime::handle::Handle;
use crate::runtime::report;
use crate::runtime::shutdown;
use crate::scheduler::current;
use crate::tasks::task::Task;

/// Owns workers, their tasks, and a pool of threads for calls that block.
///
/// It spawns and runs tasks by its [`Handle`], to which it dereferences.
///
/// Runtimes are values, and several may live in one process. They share the panic hook that names
/// the task, and the signal handler that reports stack overflows. The first runtime installs both,
/// and they stay.
///
/// Dropping a runtime ends it as [`shutdown`](Runtime::shutdown) does. After five seconds it names
/// the remaining tasks on standard error; [`end_within`](crate::Builder::end_within) limits the wait.
/// On a thread of the runtime, in a task or in a closure of
/// its blocking pool, the drop begins the end and returns at once.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// let runtime = fibra::Runtime::builder().workers(2).build()?;
/// let words = ["blocking", "code"];
/// assert_eq!(runtime.run(|| words.len()), 2);
/// assert_eq!(runtime.spawn(|| 1).join().unwrap(), 1);
/// assert_eq!(runtime.spawn_blocking(|| 2).join().unwrap(), 2);
/// assert_eq!((runtime.handle().workers(), runtime.stalls()), (2, 0));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Runtime {
    pub(super) handle: Handle,
    pub(super) threads: Vec<thread::JoinHandle<()>>,
}

impl Runtime {
    /// Returns a handle that can be sent elsewhere.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Cancels all tasks, unwinds each on its own worker, and waits for their ends.
    ///
    /// It also waits for the closures on the blocking pool. It does not wait for internal calls
    /// that may never end, such as the lookup of a name or the opening of a file: their threads are
    /// left behind.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let runtime = fibra::Runtime::builder().workers(1).build()?;
    /// let task = runtime.spawn(fibra::task::park);
    /// runtime.shutdown();
    /// assert!(task.join().unwrap_err().is_cancelled());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown(self) {
        drop(self);
    }

    /// Ends the runtime, as [`shutdown`](Runtime::shutdown) does, in at most `timeout`.
    ///
    /// Returns the tasks that have started and not ended; their workers stay until they do.
    /// Unstarted tasks behind them are cancelled, and are not named.
    ///
    /// Does not wait where a task of this runtime calls it, or a closure on its blocking pool: it
    /// would wait for its caller. Then the end begins, and the tasks that it will wait for are
    /// returned.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::time::Duration;
    /// let runtime = fibra::Runtime::builder().workers(1).build()?;
    /// let busy = runtime.spawn(|| std::thread::sleep(Duration::from_millis(10)));
    /// runtime.run(fibra::yield_now);
    /// assert!(runtime.shutdown_timeout(Duration::from_secs(60)).is_empty());
    /// assert!(busy.is_finished());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Vec<Task> {
        shutdown::begin(self.shared(), || ());
        if !self.is_entered() && shutdown::wait(self.shared(), Some(timeout)) {
            self.join_threads();
            return Vec::new();
        }
        self.threads.clear();
        report::tasks(self.shared()).into_iter().filter(|task| !task.has_ended()).collect()
    }

    fn join_threads(&mut self) {
        let own = thread::current().id();
        // The watching thread is among them, and may itself end the runtime, in a hook.
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != own) {
            // A worker ends its process rather than panic.
            _ = thread.join();
        }
        Pool::of(self.shared()).wait_until_let_go();
    }

    fn is_entered(&self) -> bool {
        current::is_inside(self.shared())
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        shutdown::begin(self.shared(), || ());
        if self.is_entered() || self.threads.is_empty() {
            return;
        }
        shutdown::wait_reporting(self.shared(), self.shared().config.end_within.unwrap_or(Duration::MAX));
        self.join_threads();
    }
}

// As a handle is.
impl UnwindSafe for Runtime {}
impl RefUnwindSafe for Runtime {}

impl Deref for Runtime {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("workers", &self.workers()).finish_non_exhaustive()
    }
}
