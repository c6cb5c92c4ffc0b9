//! Dumps on a signal: by the builder, or by an environment variable.
//!
//! This crate listens to no signals. The crate `fibra` does, and gives the builder a way to.

#![forbid(unsafe_code)]

use std::env;
use std::io::{self, Write};
use std::sync::{Arc, Weak};

use crate::runtime::dump::Dump;
use crate::scheduler::shared::Shared;

/// Environment variable that names a signal, for a program that sets none.
const VARIABLE: &str = "FIBRA_DUMP";

/// How many tasks a dump has at the most that lists each of them; a larger one has equal stacks once.
const MOST: usize = 1000;

/// Has a plain thread call the function at each delivery of the signal, until it returns false.
pub(crate) type ListenToSignal = fn(i32, Box<dyn Fn() -> bool + Send>) -> io::Result<()>;

/// What the builder says of dumps on a signal.
#[derive(Default)]
pub(super) struct Config {
    pub(super) signal: Option<i32>,
    pub(super) listen: Option<ListenToSignal>,
}

impl Config {
    /// Has dumps of the runtime be printed on the signal, if one is set.
    ///
    /// # Errors
    /// Where the signal cannot be listened to, and where the variable names none.
    pub(super) fn start(&self, shared: &Arc<Shared>) -> io::Result<()> {
        let Some(listen) = self.listen else {
            return match self.signal {
                None => Ok(()),
                Some(_) => Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "`dump_on_signal` needs a builder of the crate `fibra`, made by `Runtime::builder`",
                )),
            };
        };
        let signal = match (self.signal, env::var(VARIABLE)) {
            // No signal reaches a simulated process.
            _ if shared.is_simulated() => return Ok(()),
            (Some(signal), _) => signal,
            (None, Ok(name)) if !name.is_empty() => number_of(&name)?,
            (None, _) => return Ok(()),
        };
        let runtime = Arc::downgrade(shared);
        listen(signal, Box::new(move || print(&runtime)))
    }
}

/// Prints a dump on standard error, by one call. Returns false if the runtime is gone.
fn print(runtime: &Weak<Shared>) -> bool {
    let Some(shared) = runtime.upgrade().filter(|shared| !shared.ending.has_ended()) else { return false };
    let dump = Dump::of(&shared);
    let text = if dump.tasks().len() > MOST { dump.grouped().to_string() } else { dump.to_string() };
    // A closed standard error is no reason to panic.
    _ = io::stderr().write_all(format!("fibra: {text}\n").as_bytes());
    true
}

/// Returns the number of a signal: `SIGQUIT`, `QUIT` or `3`.
fn number_of(name: &str) -> io::Result<i32> {
    let named = NAMED.iter().find(|(known, _)| name == *known || name.strip_prefix("SIG") == Some(known));
    let number = named.map(|(_, number)| *number).or_else(|| name.parse().ok());
    number.ok_or_else(|| {
        let message = format!("{VARIABLE} is '{name}', which names no signal; SIGQUIT would be one");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })
}

#[cfg(unix)]
const NAMED: [(&str, i32); 6] = [
    ("QUIT", libc::SIGQUIT),
    ("USR1", libc::SIGUSR1),
    ("USR2", libc::SIGUSR2),
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("TERM", libc::SIGTERM),
];

#[cfg(not(unix))]
const NAMED: [(&str, i32); 0] = [];

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(["SIGQUIT", "QUIT", "3"].map(|name| number_of(name).ok()), [Some(libc::SIGQUIT); 3]);
        assert!(number_of("SIGNAL").unwrap_err().to_string().contains("FIBRA_DUMP is 'SIGNAL'"));
    }
}
