//! The functions on paths: std's, on the blocking pool.

#![forbid(unsafe_code)]

use std::fs::{Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use fibra_runtime::unblock;

/// Runs `call` with the path where it may block.
pub(crate) fn with_path<T: Send>(
    path: impl AsRef<Path>,
    call: impl FnOnce(&Path) -> io::Result<T> + Send,
) -> io::Result<T> {
    let path = path.as_ref();
    unblock(|| call(path))
}

/// Runs `call` with two paths on the blocking pool.
fn with_paths<T: Send>(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    call: impl FnOnce(&Path, &Path) -> io::Result<T> + Send,
) -> io::Result<T> {
    let (from, to) = (from.as_ref(), to.as_ref());
    unblock(|| call(from, to))
}

/// Returns the path in its absolute form, with all symbolic links resolved.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::canonicalize`].
pub fn canonicalize<P: AsRef<Path>>(path: P) -> io::Result<PathBuf> {
    with_path(path, |path| std::fs::canonicalize(path))
}

/// Copies the contents of a file and its permissions, and gives the number of bytes. The kernel copies, where the file
/// systems have that.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::copy`].
pub fn copy<P: AsRef<Path>, Q: AsRef<Path>>(from: P, to: Q) -> io::Result<u64> {
    with_paths(from, to, |from, to| std::fs::copy(from, to))
}

/// Makes an empty directory. See [`DirBuilder`](super::DirBuilder) for the mode.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::create_dir`].
pub fn create_dir<P: AsRef<Path>>(path: P) -> io::Result<()> {
    with_path(path, |path| std::fs::create_dir(path))
}

/// Makes a directory and all above it that do not exist.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::create_dir_all`].
pub fn create_dir_all<P: AsRef<Path>>(path: P) -> io::Result<()> {
    with_path(path, |path| std::fs::create_dir_all(path))
}

/// Returns true if the path points to something.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
///
/// # Errors
///
/// When that cannot be found out, as [`std::fs::exists`].
pub fn exists<P: AsRef<Path>>(path: P) -> io::Result<bool> {
    with_path(path, |path| std::fs::exists(path))
}

/// Makes a second name for a file.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::hard_link`].
pub fn hard_link<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> io::Result<()> {
    with_paths(original, link, |original, link| std::fs::hard_link(original, link))
}

/// Tells what the system knows of a file; of what a symbolic link points to.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::metadata`].
pub fn metadata<P: AsRef<Path>>(path: P) -> io::Result<Metadata> {
    with_path(path, |path| std::fs::metadata(path))
}

/// Reads a whole file.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::read`].
///
/// # Examples
///
/// ```
/// use fibra_io::fs;
///
/// let path = std::env::temp_dir().join(format!("fibra-read-{}", std::process::id()));
/// fs::write(&path, b"contents")?;
/// assert_eq!(fs::read(&path)?, b"contents");
/// fs::remove_file(&path)?;
/// assert!(!fs::exists(&path)?);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read<P: AsRef<Path>>(path: P) -> io::Result<Vec<u8>> {
    with_path(path, |path| std::fs::read(path))
}

/// Gives what a symbolic link points to.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::read_link`].
pub fn read_link<P: AsRef<Path>>(path: P) -> io::Result<PathBuf> {
    with_path(path, |path| std::fs::read_link(path))
}

/// Reads a whole file of text.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::read_to_string`]: `InvalidData` if it is not UTF-8.
pub fn read_to_string<P: AsRef<Path>>(path: P) -> io::Result<String> {
    with_path(path, |path| std::fs::read_to_string(path))
}

/// Removes an empty directory.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::remove_dir`].
pub fn remove_dir<P: AsRef<Path>>(path: P) -> io::Result<()> {
    with_path(path, |path| std::fs::remove_dir(path))
}

/// Removes a directory with all that is in it. Symbolic links are removed, not followed.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::remove_dir_all`].
pub fn remove_dir_all<P: AsRef<Path>>(path: P) -> io::Result<()> {
    with_path(path, |path| std::fs::remove_dir_all(path))
}

/// Removes a file's name, and the file with its last one.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::remove_file`].
pub fn remove_file<P: AsRef<Path>>(path: P) -> io::Result<()> {
    with_path(path, |path| std::fs::remove_file(path))
}

/// Renames a file or a directory, and replaces what has the new name.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::rename`].
pub fn rename<P: AsRef<Path>, Q: AsRef<Path>>(from: P, to: Q) -> io::Result<()> {
    with_paths(from, to, |from, to| std::fs::rename(from, to))
}

/// Changes who may do what with a file.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::set_permissions`].
pub fn set_permissions<P: AsRef<Path>>(path: P, perm: Permissions) -> io::Result<()> {
    with_path(path, |path| std::fs::set_permissions(path, perm))
}

/// Tells what the system knows of a file; of a symbolic link itself.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::symlink_metadata`].
pub fn symlink_metadata<P: AsRef<Path>>(path: P) -> io::Result<Metadata> {
    with_path(path, |path| std::fs::symlink_metadata(path))
}

/// Writes a whole file, and replaces the one that was there.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it runs to its end.
///
/// # Errors
///
/// As [`std::fs::write`].
pub fn write<P: AsRef<Path>, C: AsRef<[u8]>>(path: P, contents: C) -> io::Result<()> {
    let contents = contents.as_ref();
    with_path(path, |path| std::fs::write(path, contents))
}
