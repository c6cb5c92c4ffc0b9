//! Dumps on a signal, and before an abort: by the builder, or by an environment variable.
//!
//! This crate listens to no signals. The crate `fibra` does, and gives the builder a way to.

#![forbid(unsafe_code)]

use std::env;
use std::io;
use std::sync::Arc;

use crate::base::abort::say;
use crate::base::abort_dump;
use crate::runtime::dump::Dump;
use crate::scheduler::driver_here;
use crate::scheduler::runtimes;
use crate::scheduler::shared::Shared;

/// Environment variable that names signals, for a program that sets none.
const VARIABLE: &str = "FIBRA_DUMP";

/// How many tasks a dump has at the most that lists each of them; a larger one has equal stacks once.
const MOST: usize = 1000;

/// Has a plain thread call the function at each delivery of the signal, until it returns false.
pub(crate) type ListenToSignal = fn(i32, Box<dyn Fn() -> bool + Send>) -> io::Result<()>;

/// What the builder says of dumps.
#[derive(Default)]
pub(super) struct Config {
    pub(super) signal: Option<i32>,
    pub(super) on_abort: bool,
    pub(super) listen: Option<ListenToSignal>,
}

impl Config {
    /// Has dumps of the runtime be printed on the signals, if any are set.
    ///
    /// # Errors
    /// Where a signal cannot be listened to, and where the variable names none.
    pub(super) fn start(&self, shared: &Arc<Shared>) -> io::Result<()> {
        // No signal reaches a simulated process.
        if shared.is_simulated() {
            return Ok(());
        }
        let named = match (self.signal, self.listen, env::var(VARIABLE)) {
            (Some(signal), ..) => vec![signal],
            (None, Some(_), Ok(names)) if !names.is_empty() => numbers_of(&names)?,
            (None, ..) => Vec::new(),
        };
        let (aborts, signals): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|signal| *signal == libc::SIGABRT);
        if self.on_abort || !aborts.is_empty() {
            dump_on_abort()?;
        }
        let listen = |signal| {
            let runtime = Arc::downgrade(shared);
            let print = move || runtime.upgrade().is_some_and(|shared| print(&shared));
            let listen = self.listen.ok_or_else(|| {
                let message =
                    "`dump_on_signal` needs a builder of the crate `fibra`, made by `Runtime::builder`";
                io::Error::new(io::ErrorKind::Unsupported, message)
            })?;
            listen(signal, Box::new(print))
        };
        signals.into_iter().try_for_each(listen)
    }
}

/// Has dumps of all runtimes be printed before the process aborts.
fn dump_on_abort() -> io::Result<()> {
    let print_all = || runtimes::all().iter().for_each(|shared| _ = print(shared));
    driver_here::unpinned(|| abort_dump::install(print_all))
}

/// Prints a dump on standard error, by one call. Returns false if the runtime has ended.
fn print(shared: &Shared) -> bool {
    if shared.ending.has_ended() {
        return false;
    }
    let dump = Dump::of(shared);
    let text = if dump.tasks().len() > MOST { dump.grouped().to_string() } else { dump.to_string() };
    say(format_args!("{text}"));
    true
}

/// Returns the numbers of signals whose names have commas between them.
fn numbers_of(names: &str) -> io::Result<Vec<i32>> {
    names.split(',').map(|name| number_of(name.trim())).collect()
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

const NAMED: [(&str, i32); 7] = [
    ("ABRT", libc::SIGABRT),
    ("QUIT", libc::SIGQUIT),
    ("USR1", libc::SIGUSR1),
    ("USR2", libc::SIGUSR2),
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("TERM", libc::SIGTERM),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(["SIGQUIT", "QUIT", "3"].map(|name| number_of(name).ok()), [Some(libc::SIGQUIT); 3]);
        assert_eq!(numbers_of("SIGQUIT, SIGABRT").ok(), Some(vec![libc::SIGQUIT, libc::SIGABRT]));
        assert!(numbers_of("SIGNAL").unwrap_err().to_string().contains("FIBRA_DUMP is 'SIGNAL'"));
    }
}
