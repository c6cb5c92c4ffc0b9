//! Directories: what is in them, and how one is made.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, DirEntryExt};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fibra_runtime::unblock;

use super::with_path;

/// Entries that one way to the pool fetches.
const BATCH: usize = 256;

/// Gives what is in a directory, in no promised order, without `.` and `..`.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::read_dir`].
///
/// # Examples
///
/// ```
/// use fibra_io::fs;
///
/// let path = std::env::temp_dir().join(format!("fibra-read-dir-{}", std::process::id()));
/// fs::create_dir(&path)?;
/// fs::write(path.join("a file"), b"")?;
/// let names: Vec<_> = fs::read_dir(&path)?.map(|entry| entry.unwrap().file_name()).collect();
/// assert_eq!(names, ["a file"]);
/// # fs::remove_dir_all(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read_dir<P: AsRef<Path>>(path: P) -> io::Result<ReadDir> {
    with_path(path, |path| {
        let mut inner = std::fs::read_dir(path)?;
        let mut fetched = VecDeque::new();
        fetch(&mut inner, &mut fetched);
        Ok(ReadDir { inner: Some(inner), fetched })
    })
}

/// Where it may block.
fn fetch(inner: &mut std::fs::ReadDir, fetched: &mut VecDeque<io::Result<DirEntry>>) {
    fetched.extend(inner.take(BATCH).map(|entry| entry.map(DirEntry::new)));
}

/// Gives the entries of a directory: made by [`read_dir`].
///
/// A good many entries are fetched at once on the blocking pool, and given one by one.
///
/// # Cancellation
///
/// Fetching more is a cancellation point until it has begun on the pool; no entry is lost.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct ReadDir {
    /// None once it has come to the end.
    inner: Option<std::fs::ReadDir>,
    fetched: VecDeque<io::Result<DirEntry>>,
}

impl Iterator for ReadDir {
    type Item = io::Result<DirEntry>;

    fn next(&mut self) -> Option<io::Result<DirEntry>> {
        let ReadDir { inner, fetched } = self;
        if fetched.is_empty()
            && let Some(directory) = inner
        {
            unblock(|| fetch(directory, fetched));
            if fetched.is_empty() {
                *inner = None;
            }
        }
        self.fetched.pop_front()
    }
}

// As std's: entries are taken whole.
impl UnwindSafe for ReadDir {}
impl RefUnwindSafe for ReadDir {}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadDir").field("inner", &self.inner).finish_non_exhaustive()
    }
}

/// One entry of a directory: [`std::fs::DirEntry`], for tasks.
///
/// # Examples
///
/// ```
/// use fibra_io::fs::{self, DirBuilder, DirEntry};
///
/// let path = std::env::temp_dir().join(format!("fibra-dir-entry-{}", std::process::id()));
/// DirBuilder::new().recursive(true).create(path.join("inner"))?;
/// let entry: DirEntry = fs::read_dir(&path)?.next().unwrap()?;
/// assert_eq!(entry.path(), path.join("inner"));
/// assert!(entry.file_type()?.is_dir() && entry.metadata()?.is_dir());
/// # fs::remove_dir_all(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct DirEntry {
    inner: Arc<std::fs::DirEntry>,
    /// As it was when the entry was fetched, if that could be found out then.
    file_type: Option<FileType>,
}

impl DirEntry {
    /// Where it may block.
    fn new(inner: std::fs::DirEntry) -> DirEntry {
        DirEntry { file_type: inner.file_type().ok(), inner: Arc::new(inner) }
    }

    /// Returns the path: that of the directory as it was read, and the name.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.inner.path()
    }

    /// Returns the name.
    #[must_use]
    pub fn file_name(&self) -> OsString {
        self.inner.file_name()
    }

    /// Returns the kind of the file, without following a symbolic link.
    ///
    /// It was found out with the entry.
    ///
    /// # Cancellation
    ///
    /// As for [`metadata`](DirEntry::metadata), where it was not found out with the entry; else it
    /// waits for nothing.
    ///
    /// # Errors
    ///
    /// As [`std::fs::DirEntry::file_type`].
    pub fn file_type(&self) -> io::Result<FileType> {
        match self.file_type {
            Some(file_type) => Ok(file_type),
            None => unblock(|| self.inner.file_type()),
        }
    }

    /// Tells what the system knows of the file; of a symbolic link itself.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::DirEntry::metadata`].
    pub fn metadata(&self) -> io::Result<Metadata> {
        unblock(|| self.inner.metadata())
    }
}

impl DirEntryExt for DirEntry {
    fn ino(&self) -> u64 {
        self.inner.ino()
    }
}

impl fmt::Debug for DirEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Says how a directory is to be made: [`std::fs::DirBuilder`], for tasks.
///
/// Std's [`DirBuilderExt`] works on it as well.
#[derive(Debug)]
pub struct DirBuilder(std::fs::DirBuilder);

impl DirBuilder {
    /// Starts with the system's mode, and to make one directory only.
    #[expect(clippy::new_without_default, reason = "std's type has no default either")]
    #[must_use]
    pub fn new() -> DirBuilder {
        DirBuilder(std::fs::DirBuilder::new())
    }

    /// Makes parent directories as well; a directory that is there is no error then.
    pub fn recursive(&mut self, recursive: bool) -> &mut DirBuilder {
        self.0.recursive(recursive);
        self
    }

    /// Makes the directory.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::DirBuilder::create`].
    pub fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        with_path(path, |path| self.0.create(path))
    }
}

impl DirBuilderExt for DirBuilder {
    fn mode(&mut self, mode: u32) -> &mut DirBuilder {
        self.0.mode(mode);
        self
    }
}
