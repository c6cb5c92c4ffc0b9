#![doc = include_str!("../README.md")]

pub mod broadcast;
mod lazy_lock;
mod auto_reset_event;
mod barrier;
mod countdown;
mod countdown_event;
mod crowd;
mod condvar;
mod manual_reset_event;
mod once;
mod once_cell;
pub mod oneshot;
mod mutex;
mod primitive;
mod rwlock;
pub mod watch;
mod permits;
mod primitive;
mod semaphore;
mod turn;
mod wait_group;
mod reentrant_mutex;

// The wait core, by a path that the models can give another meaning.
use fibra_runtime::wait;

pub use lazy_lock::LazyLock;
pub use auto_reset_event::AutoResetEvent;
pub use barrier::{Barrier, BarrierWaitResult};
pub use countdown_event::CountdownEvent;
pub use condvar::{Condvar, RawCondvar, WaitTimeoutResult};
pub use manual_reset_event::ManualResetEvent;
pub use once::{Once, OnceState};
pub use once_cell::OnceCell;
pub use rwlock::{
    ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard, MappedRwLockReadGuard,
    MappedRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use semaphore::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError};
pub use wait_group::{OwnedWorker, WaitGroup, Worker};
pub use mutex::{ArcMutexGuard, MappedMutexGuard, Mutex, MutexGuard, RawMutex};
pub use reentrant_mutex::{
    ArcReentrantMutexGuard, MappedReentrantMutexGuard, ReentrantMutex, ReentrantMutexGuard, ThreadAndTaskId,
};
