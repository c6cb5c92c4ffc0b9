//! Files, as in [`std::fs`], for tasks.
//!
//! A program ports by changing `use std::fs` to `use fibra::fs`: the same names, signatures and error kinds. The types that
//! are plain values are std's own.
//!
//! # Waiting
//!
//! A system has no readiness for files: a call blocks its thread for as long as the disk takes. Here that is a thread of
//! the blocking pool, and the task sleeps meanwhile; in a plain thread it is that thread. Paths and buffers are borrowed,
//! not copied. The way to the pool and back costs some tens of microseconds, hence:
//!
//! * A [`File`] is read without the pool as far as the data is in memory (`RWF_NOWAIT`; Linux, on most file systems).
//! * Writes always take it. Many small ones belong into a [`BufWriter`](std::io::BufWriter).
//! * [`read`], [`write`](fn@write), [`copy`], and [`File::copy_to`] from file to file, take it once for the whole file, or for
//!   megabytes.
//! * [`read_dir`] fetches many entries at once.
//!
//! # Cancellation
//!
//! Every call that takes the pool is a cancellation point until its turn has come there; from then on it runs to its end
//! first. What may never end can be left at any time: a read or a write of a FIFO or a terminal, which waits until that is
//! ready, [`File::lock`], which looks now and then whether the lock is free, and [`File::open`], which a FIFO without another end
//! holds up. The functions for whole files, as [`read`], cannot: they are for files that end. An open or a lookup of a name that
//! was left goes on in its thread of the pool. The end of the runtime does not wait for it, so the thread may outlive the runtime;
//! it then ends with the call.

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
