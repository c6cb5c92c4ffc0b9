//! Floor 7: the thread pools for calls that block.

pub(crate) mod pool;
pub(crate) mod thread;
pub(crate) mod unblock;
