//! The promises of events, barriers, wait groups and semaphores.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/future.rs"]
mod future;

mod auto_reset_event;
mod barrier;
mod countdown_event;
mod manual_reset_event;
mod meetings;
mod notify;
mod semaphore;
mod semaphore_races;
mod wait_group;
