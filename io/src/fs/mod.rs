//! Files, as in [`std::fs`], for tasks.
//!
//! A program ports by changing `use std::fs` to `use fibra::fs`: names, signatures and error kinds are
//! std's. The types that are plain values are std's own.
//!
//! # Waiting
//!
//! The system has no readiness for files: a call blocks its thread for as long as the disk takes. For
//! a task that is a thread of the blocking pool, and the task sleeps meanwhile; a plain thread makes
//! the call itself. Paths and buffers are borrowed, not copied. The way to the pool and back costs
//! some tens of microseconds, hence:
//!
//! * A [`File`] is read without the pool if the data is in memory (`RWF_NOWAIT`; Linux, on most file systems).
//! * Writes always take it. Many small ones belong into a [`BufWriter`](std::io::BufWriter).
//! * [`read`], [`write`](fn@write), [`copy`], and [`File::copy_to`] from file to file, take it once for the whole file, or for
//!   megabytes.
//! * [`read_dir`] fetches many entries at once.
//!
//! # Cancellation
//!
//! A call on the pool is a cancellation point while it is queued; once begun, it runs to its end. Calls
//! that may never end can be cancelled at any time:
//!
//! * reads and writes of a FIFO or a terminal, which wait until it is ready,
//! * [`File::lock`], which checks now and then whether the lock is free,
//! * [`File::open`], which waits for the peer of a FIFO.
//!
//! The functions for whole files, as [`read`], cannot: they are for files that end. A cancelled open,
//! or lookup of a name, runs on in its pool thread. The end of the runtime does not wait for that
//! thread, which ends with the call.

#![forbid(unsafe_code)]

mod copy_to;
mod directory;
mod file;
mod lock;
mod options;
mod paths;
mod transfer;

pub use std::fs::{FileTimes, FileType, Metadata, Permissions, TryLockError};

pub use self::copy_to::CopyTarget;
pub use self::directory::{DirBuilder, DirEntry, ReadDir, read_dir};
pub use self::file::File;
pub use self::options::OpenOptions;
pub(crate) use self::paths::with_path;
pub use self::paths::{
    canonicalize, copy, create_dir, create_dir_all, exists, hard_link, metadata, read, read_link,
    read_to_string, remove_dir, remove_dir_all, remove_file, rename, set_permissions, symlink_metadata,
    write,
};
