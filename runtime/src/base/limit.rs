//! The errors of what the system refuses, which name the limit that was reached.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

const NO_THREAD: &str = "no thread left; see RLIMIT_NPROC (ulimit -u), the sysctls kernel.threads-max and kernel.pid_max, \
     pids.max of the cgroup and, for its stack, RLIMIT_AS (ulimit -v)";

/// Why a thread or a descriptor that this library needs for itself cannot be had.
///
/// As an [`io::Error`] it has the system's kind, and the system's own error, with its code, as its source.
#[derive(Clone, Debug)]
pub struct Refusal {
    what: &'static str,
    /// That a limit was reached, if it was one, and what sets it.
    limit: Option<&'static str>,
    cause: Arc<io::Error>,
}

impl Refusal {
    /// That of a thread for `what`.
    pub fn of_thread(what: &'static str, cause: io::Error) -> Self {
        let limit = (cause.kind() == io::ErrorKind::WouldBlock).then_some(NO_THREAD);
        Refusal { what, limit, cause: Arc::new(cause) }
    }

    /// That of a descriptor for `what`.
    pub fn of_descriptor(what: &'static str, cause: io::Error) -> Self {
        let limit = match cause.raw_os_error() {
            Some(libc::EMFILE) => Some("no descriptor left for the process; see RLIMIT_NOFILE (ulimit -n)"),
            Some(libc::ENFILE) => Some("no descriptor left in the system; see the sysctl fs.file-max"),
            _ => None,
        };
        Refusal { what, limit, cause: Arc::new(cause) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { what, limit, cause } = self;
        write!(f, "{what} cannot start: {cause}")?;
        limit.map_or(Ok(()), |limit| write!(f, ": {limit}"))
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        io::Error::new(refusal.cause.kind(), refusal)
    }
}

/// No runtime has more workers.
pub(crate) const MOST_WORKERS: usize = 4096;
