//! The promises of locks, and of cells that initialize once.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/exclusive.rs"]
mod exclusive;
#[path = "../common/future.rs"]
mod future;
#[path = "../../../runtime/tests/common/message.rs"]
mod message;
#[path = "../../../runtime/tests/common/paused.rs"]
mod paused;
#[path = "../../../runtime/tests/common/rerun.rs"]
mod rerun;
#[path = "../common/rwlocks.rs"]
mod rwlocks;

mod condvar;
mod condvar_queue;
mod deadlock;
mod deadlock_check;
mod forbidden;
mod lazy_lock;
mod lock_waits;
mod locks;
mod locks_races;
mod mutex;
mod mutex_arrivals;
mod once;
mod once_cell;
mod passed_guards;
mod reentrant_mutex;
mod rwlock;
mod rwlock_races;
mod rwlock_turns;
mod rwlock_upgrades;
