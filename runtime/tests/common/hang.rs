//! A guard against hangs.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How long a test may take before it counts as hung. No promise about speed: the machine may be busy.
const LIMIT: Duration = Duration::from_secs(120);

/// Ends the process if it lives for too long, and says which test hung.
#[must_use]
pub(crate) struct HangGuard {
    _end: mpsc::Sender<()>,
}

pub(crate) fn hang_guard() -> HangGuard {
    let (end, ended) = mpsc::channel::<()>();
    let test = thread::current().name().unwrap_or("a test").to_owned();
    thread::spawn(move || {
        if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{test} hangs");
            std::process::abort();
        }
    });
    HangGuard { _end: end }
}
