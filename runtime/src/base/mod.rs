//! Floor 0: parts without tasks: system calls, atomics, the spin lock, aborts.

pub(crate) mod abort;
#[cfg(unix)]
pub(crate) mod abort_dump;
pub(crate) mod clock;
pub(crate) mod cycles;
pub(crate) mod limit;
pub(crate) mod memory;
pub(crate) mod payload;
pub(crate) mod peer;
pub(crate) mod primitive;
pub(crate) mod random;
#[cfg(unix)]
pub(crate) mod sigaction;
pub(crate) mod skips;
pub(crate) mod spin_lock;
pub(crate) mod sys;
pub(crate) mod unwinder;
