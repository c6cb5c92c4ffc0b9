//! Signals of the system: Ctrl-C, `SIGTERM`, `SIGHUP` and their like, as something to wait for.
//!
//! A [`Signal`] listens to one signal, [`ctrl_c`] waits for one Ctrl-C. Both work in tasks, in plain threads, and without a
//! runtime.
//!
//! # Nothing is lost
//!
//! Any number of listeners may listen to one signal, and each of them sees each delivery. What comes while a listener is not
//! waiting is kept for its next [`recv`](Signal::recv), once: as in the system itself, deliveries that follow each other
//! faster than they are received may be seen as one. What came before a listener was made is not for it, unless it is on its
//! way still.
//!
//! # What concerns the whole process
//!
//! The first listener to a signal takes the place of what the system does by default, which for most signals is to end
//! the process, **and for good**: when the last listener is gone, the signal does nothing any more. Handlers that other code has
//! installed before go on to be called.
//!
//! So Ctrl-C after `ctrl_c()` has returned does nothing, unless somebody listens again. A program that ends in an orderly
//! way on the first one and at once on the second keeps one listener for both:
//!
//! ```no_run
//! use fibra::signal::{SIGINT, Signal};
//!
//! fibra::run(|| -> std::io::Result<()> {
//!     let interrupts = Signal::new(SIGINT)?;
//!     let server = fibra::spawn(|| { /* serves */ });
//!     interrupts.recv();
//!     server.cancel();
//!     fibra::spawn(move || {
//!         interrupts.recv();
//!         std::process::exit(130);
//!     });
//!     _ = server.join();
//!     Ok(())
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The handler in the process is that of the crate signal-hook, which notes the number and writes a byte into a pipe. A
//! thread of ours, started with the first listener, reads it and tells the listeners. The system runs the handler on
//! whatever stack is in use, so it may take a few KiB of that of a task.

#[doc(no_inline)]
pub use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
    SIGURG, SIGUSR1, SIGUSR2, SIGWINCH,
};

mod registry;

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use fibra_sync::AutoResetEvent;
use registry::Listener;

/// Waits for Ctrl-C (`SIGINT`), once.
///
/// Listens from the call until it returns; see the [module](self) for what Ctrl-C does after that.
///
/// # Cancellation
/// A cancellation point.
///
/// # Errors
/// As [`Signal::new`].
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

/// Listens to one signal of the system.
///
/// In a `select!` it is waited for by its [`event`](Signal::event).
///
/// # Fairness
/// Several tasks may wait on one listener: each delivery is for the one that has waited longest. To tell all of them, make a
/// listener for each.
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
    /// Begins to listen to the signal of that number.
    ///
    /// # Errors
    /// `InvalidInput` if the signal cannot be listened to: there is none of that number, the system lets nobody have it
    /// (`SIGKILL`, `SIGSTOP`), or it tells a thread of an error of its own (`SIGSEGV`, `SIGBUS`, `SIGILL`, `SIGFPE`). And
    /// when there is no thread or no descriptor left for the first listener.
    pub fn new(number: i32) -> io::Result<Signal> {
        Ok(Signal { listener: Listener::new(number)? })
    }

    /// The number of the signal.
    pub fn number(&self) -> i32 {
        self.listener.number()
    }

    /// Waits for a delivery.
    ///
    /// # Cancellation
    /// A cancellation point. Whoever unwinds has used up no delivery.
    pub fn recv(&self) {
        self.event().wait();
    }

    /// Waits for a delivery, but no longer than `timeout`. True if there was one.
    ///
    /// # Cancellation
    /// A cancellation point. Whoever unwinds has used up no delivery.
    pub fn recv_timeout(&self, timeout: Duration) -> bool {
        self.event().wait_timeout(timeout)
    }

    /// Waits for a delivery, but not beyond `deadline`. True if there was one.
    ///
    /// # Cancellation
    /// A cancellation point. Whoever unwinds has used up no delivery.
    pub fn recv_deadline(&self, deadline: Instant) -> bool {
        self.event().wait_deadline(deadline)
    }

    /// Tells whether there was a delivery that nobody has received yet, and receives it. Does not wait.
    pub fn try_recv(&self) -> bool {
        self.event().try_wait()
    }

    /// The event that each delivery sets: for a `select!`, and for futures, which wait for it by its `wait_async`.
    pub fn event(&self) -> &AutoResetEvent {
        self.listener.event()
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("number", &self.number()).finish_non_exhaustive()
    }
}
