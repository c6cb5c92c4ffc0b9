//! Waits that allocate nothing, and channels that free what they had. A binary of its own: it replaces the allocator.

#[path = "../common/allocations.rs"]
mod allocations;
#[path = "../common/channels.rs"]
mod channels;
#[path = "../common/mod.rs"]
mod common;

mod channel_waits;
mod freed;
mod primitives;
