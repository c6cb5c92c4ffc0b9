//! Ctrl-C: the first ends the runs, the second the program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit status of a program that was ended by an interrupt.
pub(crate) const STATUS: u8 = 130;

/// How long a sleep goes on after an interrupt, at the most.
const LOOK: Duration = Duration::from_millis(50);

/// Tells whether an interrupt has come.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Begins to listen for the signals. At the second one the process ends at once; the kernel ends its
    /// children.
    pub(crate) fn listen() -> io::Result<Self> {
        let (seen, early) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        for signal in [SIGINT, SIGTERM] {
            // A signal between the next two would be seen by neither.
            flag::register(signal, Arc::clone(&early))?;
            // In this order: the shutdown must find the flag as the signal before has left it.
            flag::register_conditional_shutdown(signal, i32::from(STATUS), Arc::clone(&seen))?;
            flag::register(signal, Arc::clone(&seen))?;
        }
        if early.load(Relaxed) {
            seen.store(true, Relaxed);
        }
        Ok(Self(seen))
    }

    pub(crate) fn is_set(&self) -> bool {
        // Relaxed: the flag is the whole message.
        self.0.load(Relaxed)
    }

    /// Acts as a signal does.
    #[cfg(test)]
    pub(crate) fn raise(&self) {
        self.0.store(true, Relaxed);
    }

    /// # Errors
    /// [`io::ErrorKind::Interrupted`] once the user wants the end.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.is_set() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    /// Sleeps for `duration`, or until soon after an interrupt.
    ///
    /// # Errors
    /// As [`check`](Interrupt::check), soon after.
    pub(crate) fn sleep(&self, duration: Duration) -> io::Result<()> {
        let end = Instant::now() + duration;
        loop {
            self.check()?;
            match end.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Ok(()),
                left => thread::sleep(left.min(LOOK)),
            }
        }
    }
}
