//! Waits for signals of the system: Ctrl-C, `SIGTERM`, `SIGHUP` and others.
//!
//! A [`Signal`] listens to one signal, [`ctrl_c`] waits for one Ctrl-C. Both work in tasks, in plain threads, and without a
//! runtime.
//!
//! # Nothing is lost
//!
//! Any number of listeners may listen to one signal, and each of them sees each delivery. A listener keeps one delivery for
//! its next [`recv`](Signal::recv). As in the system itself, several deliveries between two receives may be seen as one.
//! A new listener misses earlier deliveries, except one that is still on its way.
//!
//! # Effects on the whole process
//!
//! The first listener to a signal replaces the system's default action, which for most signals ends the process. It does so
//! **for good**: after the last listener is dropped, the signal does nothing. Handlers that other code installed before are
//! still called.
//!
//! So Ctrl-C after `ctrl_c()` has returned does nothing without a new listener. A program that shuts down on the first
//! Ctrl-C and exits on the second calls [`exit_on_repeat`]. The second Ctrl-C then ends it even if a task computes and
//! never waits, so that it can be neither cancelled nor replaced on its worker:
//!
//! ```no_run
//! use fibra::signal::{SIGINT, ctrl_c, exit_on_repeat};
//!
//! fibra::run(|| -> std::io::Result<()> {
//!     exit_on_repeat(SIGINT)?;
//!     let server = fibra::spawn(|| { /* serves */ });
//!     ctrl_c()?;
//!     server.cancel();
//!     _ = server.join();
//!     Ok(())
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The handler is that of the crate signal-hook. It notes the number and writes a byte into a pipe. A thread, started with
//! the first listener, reads the pipe and sets the listeners' events. The system runs the handler on the stack in use, so it
//! may take a few KiB of a task's stack.

#![forbid(unsafe_code)]

#[doc(no_inline)]
pub use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
    SIGURG, SIGUSR1, SIGUSR2, SIGWINCH,
};

mod registry;

pub(crate) use registry::call_on;

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use fibra_sync::AutoResetEvent;
use registry::Listener;

/// Waits for one Ctrl-C (`SIGINT`).
///
/// Listens from the call until it returns. The [module](self) says what Ctrl-C does after that.
///
/// # Cancellation
/// A cancellation point.
///
/// # Errors
/// Returns the errors of [`Signal::new`].
///
/// # Examples
/// ```
/// # fibra::run(|| {
/// fibra::spawn(|| {
///     fibra::signal::ctrl_c()?;
///     println!("the program ends");
///     Ok::<(), std::io::Error>(())
/// });
/// # });
/// ```
pub fn ctrl_c() -> io::Result<()> {
    Signal::new(SIGINT)?.recv();
    Ok(())
}

/// Ends the process at the second delivery of a signal from now on.
///
/// The thread that tells listeners of signals ends it, with the exit code `128 + number`, as a shell reports it. So it needs
/// no worker: tasks that compute and tasks in a deadlock do not keep the process. Nothing is cleaned up: no destructor, no
/// exit handler runs, and what is in std's buffer of standard output is lost.
///
/// The first delivery goes to the listeners only. Without one it does nothing. A later call changes nothing.
///
/// # Errors
/// Returns the errors of [`Signal::new`].
///
/// # Examples
/// ```
/// use fibra::signal::{SIGHUP, Signal, exit_on_repeat};
/// exit_on_repeat(SIGHUP)?;
/// let signal = Signal::new(SIGHUP)?;
/// signal_hook::low_level::raise(SIGHUP)?;
/// signal.recv();
/// println!("one more would be the end");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn exit_on_repeat(number: i32) -> io::Result<()> {
    registry::exit_on_repeat(number)
}

/// Delivers a signal to a process of a simulation. Returns true if that ends it.
#[doc(hidden)]
pub fn deliver_simulated(process: u64, number: i32) -> bool {
    registry::deliver_simulated(process, number)
}

/// Forgets what a simulated process has told of signals.
#[doc(hidden)]
pub fn end_simulated(process: u64) {
    registry::end_simulated(process);
}

/// Listens to one signal of the system.
///
/// A `select!` waits for its [`event`](Signal::event).
///
/// # Fairness
/// If several tasks wait on one listener, each delivery wakes the longest waiter. To wake all of them, make a listener for
/// each.
///
/// # Examples
/// ```
/// use fibra::signal::{SIGUSR1, Signal};
/// # fibra::run(|| -> std::io::Result<()> {
/// let (first, second) = (Signal::new(SIGUSR1)?, Signal::new(SIGUSR1)?);
/// signal_hook::low_level::raise(SIGUSR1)?;
/// first.recv();
/// fibra::select! {
///     wait(second.event()) => println!("both have seen it"),
///     default(std::time::Duration::from_secs(60)) => unreachable!(),
/// }
/// # Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Signal {
    listener: Listener,
}

impl Signal {
    /// Starts to listen to the signal with this number.
    ///
    /// # Errors
    /// Returns `InvalidInput` if no such signal exists, and for signals that no program can listen to: `SIGKILL`, `SIGSTOP`,
    /// and those of a thread's own errors (`SIGSEGV`, `SIGBUS`, `SIGILL`, `SIGFPE`). Returns the system's error if it refuses
    /// the first listener a thread or a descriptor.
    pub fn new(number: i32) -> io::Result<Signal> {
        Ok(Signal { listener: Listener::new(number)? })
    }

    /// Returns the number of the signal.
    pub fn number(&self) -> i32 {
        self.listener.number()
    }

    /// Waits for a delivery.
    ///
    /// # Cancellation
    /// A cancellation point. A cancelled wait consumes no delivery.
    pub fn recv(&self) {
        self.event().wait();
    }

    /// Waits for a delivery, at most for `timeout`. Returns whether one came.
    ///
    /// # Cancellation
    /// A cancellation point. A cancelled wait consumes no delivery.
    ///
    /// # Examples
    /// ```
    /// use fibra::signal::{SIGUSR2, Signal};
    /// use std::time::{Duration, Instant};
    /// let signal = Signal::new(SIGUSR2)?;
    /// assert_eq!(signal.number(), SIGUSR2);
    /// assert!(!signal.try_recv() && !signal.recv_timeout(Duration::from_millis(1)));
    /// signal_hook::low_level::raise(SIGUSR2)?;
    /// assert!(signal.recv_deadline(Instant::now() + Duration::from_secs(60)));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn recv_timeout(&self, timeout: Duration) -> bool {
        self.event().wait_timeout(timeout)
    }

    /// Waits for a delivery until `deadline` at the latest. Returns whether one came.
    ///
    /// # Cancellation
    /// A cancellation point. A cancelled wait consumes no delivery.
    pub fn recv_deadline(&self, deadline: Instant) -> bool {
        self.event().wait_deadline(deadline)
    }

    /// Receives a delivery without waiting; returns true if there was one.
    pub fn try_recv(&self) -> bool {
        self.event().try_wait()
    }

    /// Returns the event that each delivery sets.
    ///
    /// A `select!` can wait for it, and a future by its `wait_async`.
    pub fn event(&self) -> &AutoResetEvent {
        self.listener.event()
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("number", &self.number()).finish_non_exhaustive()
    }
}
