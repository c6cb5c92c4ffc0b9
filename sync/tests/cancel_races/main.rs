//! Cancellations that race with wakes. A binary of its own: it counts the memory of the process.

#[path = "../../../runtime/tests/common/at_once/mod.rs"]
mod at_once;
#[path = "../common/channels.rs"]
mod channels;
#[path = "../common/mod.rs"]
mod common;

mod channel_waits;
mod primitives;
