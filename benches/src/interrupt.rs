//! Ctrl-C: the first ends the runs, the second the program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit status of a program that was ended by an interrupt.
pub(crate) const STATUS: u8 = 130;

/// Whether somebody wants the end.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Begins to listen for the signals. At the second one the process ends at once; the kernel ends its children.
    pub(crate) fn listen() -> io::Result<Self> {
        let seen = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the shutdown must find the flag as the signal before has left it.
            flag::register_conditional_shutdown(signal, i32::from(STATUS), Arc::clone(&seen))?;
            flag::register(signal, Arc::clone(&seen))?;
        }
        Ok(Self(seen))
    }

    pub(crate) fn is_set(&self) -> bool {
        // Relaxed: the flag is the whole message.
        self.0.load(Relaxed)
    }
}
