//! The readiness word of one descriptor: what the kernel last reported, and when.
//!
//! ```text
//!  63                        8   7 .. 4     3        2         1          0
//! ┌───────────────────────────┬────────┬────────┬─────────┬──────────┬──────────┐
//! │ tick: edges heard so far  │ unused │ URGENT │ HUNG_UP │ WRITABLE │ READABLE │
//! └───────────────────────────┴────────┴────────┴─────────┴──────────┴──────────┘
//! ```
//!
//! A direction that is set means "a system call is worth trying"; one that is clear means "the next system call would
//! find nothing, wait for an edge instead". A new word has both set: nothing is known, so the system call comes first.
//!
//! | move | made by | effect |
//! | --- | --- | --- |
//! | [`edge`](Readiness::edge) | the reactor, a thread that asked `poll(2)`, or a wait whose time is up, for a last look | sets what the edge says, one more tick |
//! | [`blocked`](Readiness::blocked) | whose system call found nothing | clears its direction, unless the tick has moved |
//! | [`drained`](Readiness::drained) | whose system call moved less than it could | the same, unless a sticky bit is set |
//!
//! **Why a tick.** Between the system call that finds nothing and the store that says so, the reactor may hear of new
//! data. Epoll is edge-triggered and says it once: clearing then would put the reader to sleep over a full socket. So
//! a clear names the word that was loaded *before* the system call, and fails if an edge has come since. An edge that
//! the kernel has raised but the reactor has not fetched yet sets the bit again later, which is as good.
//!
//! **Why sticky bits.** A short read usually means an empty socket, and the next read can wait without asking. Two
//! things break that inference, and neither is followed by another edge: the end of the stream may lie right behind
//! the data (`HUNG_UP`), and a read stops short at the mark of urgent data (`URGENT`). From then on only
//! `WouldBlock` clears a direction. The bits do not make a direction ready by themselves, so a descriptor whose error
//! condition stays up for good does not spin.
//!
//! The word publishes no memory of ours: the data is in the kernel. Its edges are Release and its loads Acquire only
//! so that a thread that sees an edge also sees what the reactor did before it (closing itself, for one).
//!
//! Rejected: one tick for each direction. It would save a failed clear when an edge for writers meets a reader, which
//! costs one system call and is rare, since an edge for readers nearly always says "writable" as well.

use std::fmt;

use crate::primitive::{AtomicU64, Ordering};
use crate::sys::Direction;

#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) mod set;
pub(crate) mod source;

/// A read finds data, the end of the stream, a connection to accept, or an error.
const READABLE: u64 = 1 << 0;
/// A write finds room, or an error; a connection attempt has an outcome.
const WRITABLE: u64 = 1 << 1;
/// Sticky: one half of the connection has ended, or an error was signalled.
const HUNG_UP: u64 = 1 << 2;
/// Sticky: urgent data was signalled at least once.
const URGENT: u64 = 1 << 3;
/// The bits after which a short transfer proves nothing.
const STICKY_MASK: u64 = HUNG_UP | URGENT;
/// One edge.
const ONE_TICK: u64 = 1 << 8;
/// All the ticks.
const TICK_MASK: u64 = !(ONE_TICK - 1);

fn bit(direction: Direction) -> u64 {
    match direction {
        Direction::Read => READABLE,
        Direction::Write => WRITABLE,
    }
}

/// What one event of the kernel says about a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge(u64);

impl Edge {
    /// Everything may have changed: all waiters look again.
    pub(crate) const ALL: Edge = Edge(READABLE | WRITABLE);

    /// An edge that says nothing yet.
    pub(crate) fn new() -> Edge {
        Edge(0)
    }

    /// Adds that one direction is worth a try.
    pub(crate) fn ready(self, direction: Direction, yes: bool) -> Edge {
        self.with(bit(direction), yes)
    }

    /// Adds that one half of the connection has ended or an error is pending.
    pub(crate) fn hung_up(self, yes: bool) -> Edge {
        self.with(HUNG_UP, yes)
    }

    /// Adds that urgent data is pending.
    pub(crate) fn urgent(self, yes: bool) -> Edge {
        self.with(URGENT, yes)
    }

    /// Returns true if waiters of that direction must look again.
    pub(crate) fn wakes(self, direction: Direction) -> bool {
        self.0 & bit(direction) != 0
    }

    fn with(self, bit: u64, yes: bool) -> Edge {
        Edge(if yes { self.0 | bit } else { self.0 })
    }
}

/// The word at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot(u64);

impl Snapshot {
    /// Returns true if a system call in that direction is worth trying.
    #[inline]
    pub(crate) fn is_ready(self, direction: Direction) -> bool {
        self.0 & bit(direction) != 0
    }

    /// Returns true if one half of the connection is known to have ended, or an error was signalled.
    pub(crate) fn is_hung_up(self) -> bool {
        self.0 & HUNG_UP != 0
    }

    fn is_sticky(self) -> bool {
        self.0 & STICKY_MASK != 0
    }

    fn tick(self) -> u64 {
        self.0 & TICK_MASK
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("readable", &(self.0 & READABLE != 0))
            .field("writable", &(self.0 & WRITABLE != 0))
            .field("hung_up", &(self.0 & HUNG_UP != 0))
            .field("urgent", &(self.0 & URGENT != 0))
            .field("tick", &(self.tick() / ONE_TICK))
            .finish()
    }
}

/// What became of an attempt to clear a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an overtaken clear means that the system call is to be tried again"]
pub(crate) enum Clearing {
    /// The direction is clear: an operation waits for an edge.
    Cleared,
    /// An edge came after the system call had looked: try again.
    Overtaken,
}

/// The word itself. See the [module](self).
pub(crate) struct Readiness {
    word: AtomicU64,
}

impl Readiness {
    /// A word that knows nothing: both directions are worth a try.
    pub(crate) fn new() -> Readiness {
        Readiness { word: AtomicU64::new(READABLE | WRITABLE) }
    }

    /// What is known now. Load it before the system call whose outcome is to be reported.
    #[inline]
    pub(crate) fn load(&self) -> Snapshot {
        // Acquire: pairs with the Release in `edge`.
        Snapshot(self.word.load(Ordering::Acquire))
    }

    /// Notes what the kernel has signalled.
    pub(crate) fn edge(&self, edge: Edge) {
        // Release: pairs with the Acquire in `load`. A failed exchange publishes nothing and reads a value only to
        // try again with it, hence Relaxed.
        let next = |word: u64| Some((word | edge.0).wrapping_add(ONE_TICK));
        let updated = self.word.fetch_update(Ordering::Release, Ordering::Relaxed, next);
        debug_assert!(updated.is_ok(), "the update is unconditional");
    }

    /// Notes that a system call made after `seen` found nothing.
    pub(crate) fn blocked(&self, direction: Direction, seen: Snapshot) -> Clearing {
        let mut now = seen;
        loop {
            let cleared = now.0 & !bit(direction);
            // Relaxed: a clear publishes nothing. The waiter that relies on it looks at the word once more under the
            // lock of its wait list, which the reactor takes after each edge.
            match self.word.compare_exchange_weak(now.0, cleared, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Clearing::Cleared,
                Err(word) if Snapshot(word).tick() != seen.tick() => return Clearing::Overtaken,
                Err(word) => now = Snapshot(word),
            }
        }
    }

    /// Notes that a system call made after `seen` moved fewer bytes than it was asked to, so that another one would
    /// find nothing. Believed only as long as no sticky bit is set; an edge in between is as good as no clear.
    #[inline]
    pub(crate) fn drained(&self, direction: Direction, seen: Snapshot) {
        if !seen.is_sticky() {
            // Whichever it was: if an edge came in between, its bit stands, and that is all that matters here.
            let _ = self.blocked(direction, seen);
        }
    }
}
