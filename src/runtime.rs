//! Wires the runtime and the reactor together. No other module knows both.

#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::ops::Deref;
use std::time::Duration;

use fibra_runtime::Task;

/// Configures a runtime with I/O.
///
/// [`Runtime::builder`] makes one that has a reactor; `Builder::new` makes one without.
///
/// # Examples
/// ```
/// let builder = fibra::Builder::new().driver(fibra_io::driver()).workers(1);
/// assert_eq!(builder.run(|| 42)?, 42);
/// # Ok::<(), std::io::Error>(())
/// ```
pub type Builder = fibra_runtime::Builder<Runtime>;

/// Runs tasks on workers that wait for I/O in a reactor.
///
/// Derefs to [`fibra_runtime::Runtime`].
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
    /// Starts a runtime with the defaults.
    ///
    /// These are one worker for each processor that the process may use.
    ///
    /// # Errors
    /// Returns the system's error if it refuses a thread or a descriptor.
    pub fn new() -> io::Result<Self> {
        Self::builder().build()
    }

    /// Returns a builder with the defaults and a reactor.
    ///
    /// With the feature `insight`, which is a default one, dumps have stacks from then on. With the feature `tracing` entered
    /// spans follow their tasks (`fibra::tracing`), by a setting of [`on_switch`](Builder::on_switch).
    pub fn builder() -> Builder {
        #[cfg(all(
            feature = "insight",
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64")
        ))]
        fibra_insight::install();
        let builder = Builder::new().driver(fibra_io::driver()).listen_to_signals(crate::signal::call_on);
        #[cfg(feature = "tracing")]
        let builder =
            builder.on_switch(|task| crate::tracing::follow(task, crate::tracing::Inherit::default()));
        builder
    }

    /// Cancels all tasks and waits until they have ended.
    ///
    /// Each task unwinds on its own worker. Closures on the blocking pool are waited for as well.
    ///
    /// # Examples
    /// ```
    /// let runtime = fibra::Runtime::new()?;
    /// let sleeper = runtime.spawn(|| fibra::sleep(std::time::Duration::from_secs(3600)));
    /// runtime.shutdown();
    /// assert!(sleeper.join().is_err_and(|error| error.is_cancelled()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown(self) {
        self.0.shutdown();
    }

    /// Cancels all tasks and waits until they have ended, at most for `timeout`.
    ///
    /// Returns the started tasks that have not ended. Their workers stay until they do. See [`shutdown`](Runtime::shutdown).
    ///
    /// # Examples
    /// ```
    /// let runtime = fibra::Runtime::new()?;
    /// let sleeper = runtime.spawn(|| fibra::sleep(std::time::Duration::from_secs(3600)));
    /// assert!(runtime.shutdown_timeout(std::time::Duration::from_secs(60)).is_empty());
    /// assert!(sleeper.join().is_err_and(|error| error.is_cancelled()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
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

/// Runs `f` as the first task of a runtime with the defaults.
///
/// The calling thread is worker 0, so `f` and its value need be neither `Send` nor `'static`. When `f` returns, the other
/// tasks are cancelled, and each unwinds on its own worker. Tasks that remain after five seconds are named on standard error.
/// After a minute ([`end_within`](Builder::end_within)) the process reports what each of them waits for, and exits with code 1.
///
/// # Panics
/// Resumes the panic of `f`. Panics if a task calls it, and if the system refuses a thread or a descriptor; `run` of
/// [`Runtime::builder`] returns that as an error.
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
    run_on(Runtime::builder(), f)
}

/// Runs `f` as the first task of a runtime.
#[track_caller]
pub fn run_on<F, T>(builder: Builder, f: F) -> T
where
    F: FnOnce() -> T,
{
    match builder.run(f) {
        Ok(value) => value,
        Err(error) => panic!("the runtime could not be started: {error}"),
    }
}
