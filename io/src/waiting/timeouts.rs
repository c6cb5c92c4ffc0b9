//! How long the reads and writes of one open socket wait.
//!
//! In std timeouts are options of the open socket in the kernel, so clones share them. Our calls never block in the
//! kernel, so we have to keep time ourselves, and asking for the option at each wait would be one more system call. Hence
//! they are kept here, shared by the clones that `try_clone` makes. The kernel's option is set as well, so that std types
//! and raw descriptors made from our sockets agree; and it is read back when a socket is made from one.
//!
//! Deadlines stand beside them: the kernel knows none, so they are kept here alone. Listeners and pipes have only those.

#![forbid(unsafe_code)]

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use fibra_runtime::clock;

use crate::primitive::{AtomicU64, Ordering};

/// No timeout, no deadline.
const NONE: u64 = 0;
/// Makes an order-preserving unsigned number of a signed one, so that `NONE` is the farthest past.
const SIGN: u64 = 1 << 63;

/// What deadlines are told from; of no meaning itself.
static EPOCH: LazyLock<Instant> = LazyLock::new(clock::now);

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Timeouts {
    read: Timeout,
    write: Timeout,
}

impl Timeouts {
    pub(crate) fn new(read: Option<Duration>, write: Option<Duration>) -> Timeouts {
        let timeouts = Timeouts::default();
        timeouts.read.set(read);
        timeouts.write.set(write);
        timeouts
    }

    pub(crate) fn read(&self) -> &Timeout {
        &self.read
    }

    pub(crate) fn write(&self) -> &Timeout {
        &self.write
    }
}

/// One of the two.
#[derive(Debug, Default)]
pub(crate) struct Timeout {
    /// In nanoseconds, at most some 584 years.
    length: AtomicU64,
    /// In nanoseconds from `EPOCH`, either way, at most some 292 years.
    deadline: AtomicU64,
}

impl Timeout {
    pub(crate) fn get(&self) -> Option<Duration> {
        // Relaxed: the value is all there is to it.
        match self.length.load(Ordering::Relaxed) {
            NONE => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    /// Sets it; a zero is taken for none, and the caller has refused it before.
    pub(crate) fn set(&self, timeout: Option<Duration>) {
        let nanos = timeout.map_or(NONE, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        // Relaxed: see `get`.
        self.length.store(nanos, Ordering::Relaxed);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        // Relaxed: see `get`.
        let nanos = match self.deadline.load(Ordering::Relaxed) {
            NONE => return None,
            nanos => (nanos ^ SIGN).cast_signed(),
        };
        let distance = Duration::from_nanos(nanos.unsigned_abs());
        match nanos < 0 {
            true => EPOCH.checked_sub(distance),
            false => EPOCH.checked_add(distance),
        }
    }

    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) {
        let nanos = deadline.map_or(NONE, |deadline| from_epoch(deadline).cast_unsigned() ^ SIGN);
        // Relaxed: see `get`.
        self.deadline.store(nanos, Ordering::Relaxed);
    }

    /// How long a wait that begins now may take.
    #[inline]
    pub(crate) fn left(&self) -> Option<Duration> {
        // Relaxed: see `get`.
        match (self.length.load(Ordering::Relaxed), self.deadline.load(Ordering::Relaxed)) {
            (NONE, NONE) => None,
            _ => self.left_of_some(),
        }
    }

    #[cold]
    fn left_of_some(&self) -> Option<Duration> {
        let left = self.deadline().map(|deadline| deadline.saturating_duration_since(clock::now()));
        match (self.get(), left) {
            (Some(timeout), Some(left)) => Some(timeout.min(left)),
            (timeout, left) => timeout.or(left),
        }
    }
}

/// Nanoseconds from `EPOCH` to `at`; never the least number, which stands for none.
fn from_epoch(at: Instant) -> i64 {
    let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match at.checked_duration_since(*EPOCH) {
        Some(after) => nanos(after),
        None => -nanos(EPOCH.duration_since(at)),
    }
}

/// The methods for the deadlines of one type, which it keeps in a [`Timeout`].
macro_rules! deadline_methods {
    (read $ours:ident: $it:ident => $limit:expr) => {
        impl $ours {
            /// Sets the moment until which reads wait, all of them together: a bound for a whole request, however many
            /// reads it takes. `None`, the default, is for ever.
            ///
            /// A read that would wait beyond it fails with `WouldBlock`, as with a timeout; where there is a timeout as well,
            /// whichever comes first counts. What is there already is read at any time, and a read that waits already keeps
            /// the deadline that it started with. std has no such thing: what leaves for std leaves it behind.
            pub fn set_read_deadline(&self, deadline: Option<std::time::Instant>) {
                let $it = self;
                $limit.set_deadline(deadline);
            }

            /// Returns the moment until which reads wait.
            pub fn read_deadline(&self) -> Option<std::time::Instant> {
                let $it = self;
                $limit.deadline()
            }
        }
    };
    (write $ours:ident: $it:ident => $limit:expr) => {
        impl $ours {
            /// Sets the moment until which writes wait, all of them together: a bound for a whole answer, however many
            /// writes it takes. `None`, the default, is for ever.
            ///
            /// A write that would wait beyond it fails with `WouldBlock`, as with a timeout; where there is a timeout as
            /// well, whichever comes first counts. What there is room for is written at any time, and a write that waits
            /// already keeps the deadline that it started with. std has no such thing: what leaves for std leaves it behind.
            pub fn set_write_deadline(&self, deadline: Option<std::time::Instant>) {
                let $it = self;
                $limit.set_deadline(deadline);
            }

            /// Returns the moment until which writes wait.
            pub fn write_deadline(&self) -> Option<std::time::Instant> {
                let $it = self;
                $limit.deadline()
            }
        }
    };
}

pub(crate) use deadline_methods;
