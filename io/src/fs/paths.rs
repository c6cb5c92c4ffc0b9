//! The functions of [`std::fs`] that take paths, run on the blocking pool.

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

/// Writes std's functions on one path or two, each as one closure on the blocking pool.
macro_rules! on_pool {
    ($($(#[$attribute:meta])* fn $name:ident($($path:ident: $parameter:ident),+) -> $output:ty;)+) => {$(
        $(#[$attribute])*
        pub fn $name<$($parameter: AsRef<Path>),+>($($path: $parameter),+) -> io::Result<$output> {
            $(let $path = $path.as_ref();)+
            unblock(|| std::fs::$name($($path),+))
        }
    )+};
}

on_pool! {
    /// Returns the path in its absolute form, with all symbolic links resolved.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::canonicalize`].
    fn canonicalize(path: P) -> PathBuf;

    /// Makes an empty directory. See [`DirBuilder`](super::DirBuilder) for the mode.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::create_dir`].
    fn create_dir(path: P) -> ();

    /// Makes a directory and all above it that do not exist.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::create_dir_all`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::unix::fs::PermissionsExt;
    /// use fibra_io::fs;
    ///
    /// let path = std::env::temp_dir().join(format!("fibra-names-{}", std::process::id()));
    /// let (inner, file) = (path.join("some/inner"), path.join("file"));
    /// fs::create_dir_all(&inner)?;
    /// fs::remove_dir(&inner)?;
    /// fs::write(&file, b"contents")?;
    /// fs::hard_link(&file, &inner)?;
    /// fs::rename(&inner, path.join("renamed"))?;
    /// fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    /// assert_eq!(fs::metadata(path.join("renamed"))?.permissions().mode() & 0o777, 0o600);
    /// assert_eq!(fs::canonicalize(&path)?.join("file"), fs::canonicalize(&file)?);
    /// assert!(fs::symlink_metadata(&file)?.is_file() && fs::read_link(&file).is_err());
    /// # fs::remove_dir_all(&path)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn create_dir_all(path: P) -> ();

    /// Returns true if the path points to something.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
    ///
    /// # Errors
    ///
    /// When that cannot be found out, as [`std::fs::exists`].
    fn exists(path: P) -> bool;

    /// Tells what the system knows of a file; of what a symbolic link points to.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::metadata`].
    fn metadata(path: P) -> Metadata;

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
    fn read(path: P) -> Vec<u8>;

    /// Gives what a symbolic link points to.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::read_link`].
    fn read_link(path: P) -> PathBuf;

    /// Reads a whole file of text.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::read_to_string`]: `InvalidData` if it is not UTF-8.
    fn read_to_string(path: P) -> String;

    /// Removes an empty directory.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::remove_dir`].
    fn remove_dir(path: P) -> ();

    /// Removes a directory with all that is in it. Symbolic links are removed, not followed.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::remove_dir_all`].
    fn remove_dir_all(path: P) -> ();

    /// Removes a file's name, and the file with its last one.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::remove_file`].
    fn remove_file(path: P) -> ();

    /// Tells what the system knows of a file; of a symbolic link itself.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::symlink_metadata`].
    fn symlink_metadata(path: P) -> Metadata;
}

on_pool! {
    /// Copies the contents of a file and its permissions, and gives the number of bytes. The kernel
    /// copies, where the file systems have that.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::copy`].
    fn copy(from: P, to: Q) -> u64;

    /// Makes a second name for a file.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::hard_link`].
    fn hard_link(original: P, link: Q) -> ();

    /// Renames a file or a directory, and replaces what has the new name.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// As [`std::fs::rename`].
    fn rename(from: P, to: Q) -> ();
}

/// Changes the permissions of a file.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it
/// runs to its end.
///
/// # Errors
///
/// As [`std::fs::set_permissions`].
pub fn set_permissions<P: AsRef<Path>>(path: P, perm: Permissions) -> io::Result<()> {
    with_path(path, |path| std::fs::set_permissions(path, perm))
}

/// Writes a whole file, in the place of a former one.
///
/// # Cancellation
///
/// A cancellation point until it has begun on the blocking pool, with nothing done; from then on it
/// runs to its end.
///
/// # Errors
///
/// As [`std::fs::write`].
pub fn write<P: AsRef<Path>, C: AsRef<[u8]>>(path: P, contents: C) -> io::Result<()> {
    let contents = contents.as_ref();
    with_path(path, |path| std::fs::write(path, contents))
}
