#![doc = include_str!("../README.md")]

mod auto_reset_event;
mod barrier;
pub mod broadcast;
mod budget;
pub mod channel;
mod compile_fail;
mod condvar;
mod countdown;
mod countdown_event;
mod drop_all;
mod lazy_lock;
mod manual_reset_event;
mod messages;
pub mod mpsc;
mod mutex;
mod notify;
mod once;
mod once_cell;
pub mod oneshot;
mod patience;
mod plain_traits;
mod primitive;
mod reentrant_mutex;
mod rwlock;
mod semaphore;
mod wait_group;
pub mod watch;

// The models in `tests/loom.rs` give this path another meaning.
use fibra_runtime::wait;

/// Re-exports the crate of the lock traits, for code that is generic over locks.
pub use lock_api;
/// Guards a lock that it owns by an `Arc`.
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};

pub use auto_reset_event::AutoResetEvent;
pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{Condvar, RawCondvar, WaitTimeoutResult};
pub use countdown_event::CountdownEvent;
pub use lazy_lock::LazyLock;
pub use manual_reset_event::ManualResetEvent;
pub use mutex::{
    FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard, Mutex, MutexGuard, RawFairMutex,
    RawMutex,
};
pub use notify::Notify;
pub use once::{Once, OnceState};
pub use once_cell::{OnceCell, OnceLock};
pub use reentrant_mutex::{
    MappedReentrantMutexGuard, ReentrantLock, ReentrantLockGuard, ReentrantMutex, ReentrantMutexGuard,
    ThreadAndTaskId,
};
pub use rwlock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RawRwLock, RwLock, RwLockExt, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use semaphore::{
    AcquireError, OwnedSemaphorePermit, Permits, Semaphore, SemaphorePermit, TryAcquireError,
};
/// The earlier name of [`WaitGroupGuard`].
#[doc(no_inline)]
pub use wait_group::WaitGroupGuard as Worker;
pub use wait_group::{OwnedWorker, WaitGroup, WaitGroupGuard};
