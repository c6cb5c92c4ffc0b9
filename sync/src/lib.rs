//! The synchronization primitives of fibra.
//!
//! Each works between tasks, between plain threads, and between the two, and waits without allocating.

mod manual_reset_event;

pub use manual_reset_event::ManualResetEvent;
