//! The one place that wires runtime and reactor together.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::time::Duration;

use fibra_runtime::Task;

/// Describes a runtime with I/O; made by [`Runtime::builder`], which sets the reactor (a bare `Builder::new` does not).
pub type Builder = fibra_runtime::Builder<Runtime>;

/// A runtime with I/O: a [`fibra_runtime::Runtime`] whose workers wait in a reactor.
///
/// # Examples
/// ```
/// let runtime = fibra::Runtime::builder().workers(2).build()?;
/// let address = runtime.run(|| fibra::net::TcpListener::bind("127.0.0.1:0")?.local_addr())?;
/// assert!(address.port() > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Runtime(fibra_runtime::Runtime);

impl Runtime {
    /// Starts a runtime with the defaults: a worker for each processor that the process may use.
    ///
    /// # Errors
    /// When a thread or a descriptor for it cannot be had.
    pub fn new() -> io::Result<Self> {
        Self::builder().build()
    }

    /// Starts to describe a runtime.
    pub fn builder() -> Builder {
        Builder::new().driver(fibra_io::driver())
    }

    /// Cancels all tasks, unwinds each on its own worker, and waits until all of them and all closures on the blocking
    /// pool have ended.
    pub fn shutdown(self) {
        self.0.shutdown();
    }

    /// As [`shutdown`](Runtime::shutdown), but waits no longer than `timeout`. Returns the tasks that have started and not
    /// ended; their workers stay until they do.
    pub fn shutdown_timeout(self, timeout: Duration) -> Vec<Task> {
        self.0.shutdown_timeout(timeout)
    }
}

impl From<fibra_runtime::Runtime> for Runtime {
    fn from(runtime: fibra_runtime::Runtime) -> Self {
        Runtime(runtime)
    }
}

impl Deref for Runtime {
    type Target = fibra_runtime::Runtime;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Runs `f` as the first task of a runtime with the defaults, whose worker 0 is the calling thread.
///
/// `f` and its value need be neither `Send` nor `'static`. When `f` returns, what is left is cancelled and unwound, each
/// task on its own worker; after five seconds of that it is said on standard error who is still there.
///
/// # Panics
/// With the panic of `f`; when called from a task; and when the runtime cannot be started, for want of threads or
/// descriptors. [`Runtime::builder`] has a `run` that returns that as an error.
///
/// # Examples
/// ```
/// let text = String::from("borrowed");
/// let length = fibra::run(|| fibra::spawn_local(|| 8).join().unwrap().min(text.len()));
/// assert_eq!(length, 8);
/// ```
#[track_caller]
pub fn run<F, T>(f: F) -> T
where
    F: FnOnce() -> T,
{
    match Runtime::builder().run(f) {
        Ok(value) => value,
        Err(error) => panic!("the runtime could not be started: {error}"),
    }
}
