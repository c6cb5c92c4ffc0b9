#![doc = include_str!("../README.md")]

mod manual_reset_event;
mod primitive;
mod rwlock;

// The wait core, by a path that the models can give another meaning.
use fibra_runtime::wait;

pub use manual_reset_event::ManualResetEvent;
pub use rwlock::{
    ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard, MappedRwLockReadGuard,
    MappedRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
