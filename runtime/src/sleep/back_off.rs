//! Backing off: a short spin before a sleep.
//!
//! Two workers whose tasks want a short lock all the time so take turns: one backs off while its
//! peer locks and unlocks in its own cache, and no task sleeps. Likewise one endpoint of a channel
//! backs off while its peer sends, or receives, a run of messages in its own cache.

#![forbid(unsafe_code)]

use std::hint::spin_loop;
use std::sync::OnceLock;
use std::thread;

use crate::base::skips::Skips;
use crate::scheduler::current;

/// Limit of the waits without a spin.
const MOST_SKIPS: u32 = 4095;

/// Failures in a row after which every wait still spins: a sleep costs more than some spins.
const TOLERATED: u32 = 4;

thread_local! {
    static SKIPS: Skips = const { Skips::new(TOLERATED, MOST_SKIPS) };
}

/// Selects how often a spin looks at what it waits for. The pauses between the looks double.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Looks {
    /// Soon and often, to see an event at once.
    Often,
    /// Late and seldom, since each look takes the cache line from the owner of a lock.
    Seldom,
}

/// Spins until `done`, for some microseconds. Returns true if it was done.
///
/// Spins only where another worker or thread can help, no task is ready here, and spins have
/// helped: failures in a row double the number of waits of this thread that do not spin, and a
/// success resets it.
pub fn back_off_until(looks: Looks, done: impl FnMut() -> bool) -> bool {
    is_worth_while() && spin(looks, done)
}

/// Returns true where [`back_off_until`] spins.
pub(crate) fn is_worth_while() -> bool {
    current::with_worker(|worker| worker.may_spin()).unwrap_or(true) && has_processors() && is_due()
}

/// Spins until `done`. For a caller that has checked [`is_worth_while`].
pub(crate) fn spin(looks: Looks, mut done: impl FnMut() -> bool) -> bool {
    let mut pauses = match looks {
        Looks::Often => 0..7,
        Looks::Seldom => 5..8,
    };
    let helped = pauses.any(|doublings| {
        (0..1 << doublings).for_each(|_| spin_loop());
        done()
    });
    note(helped);
    helped
}

/// Returns true where a task is ready on this worker.
pub(crate) fn is_another_ready() -> bool {
    current::with_worker(|worker| worker.has_ready()) == Some(true)
}

/// Returns true if the process may use several processors. On a single one a spin keeps all other
/// threads from running.
fn has_processors() -> bool {
    static MANY: OnceLock<bool> = OnceLock::new();
    *MANY.get_or_init(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}

/// Counts the processors that the calling thread may use, once. The thread must not be pinned.
pub(crate) fn count_processors() {
    has_processors();
}

#[inline(never)]
fn is_due() -> bool {
    SKIPS.with(Skips::is_due)
}

#[inline(never)]
fn note(helped: bool) {
    SKIPS.with(|skips| skips.note(helped));
}
