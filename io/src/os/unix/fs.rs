//! Additions to [`fs`](crate::fs): std's functions, on the blocking pool, and std's traits, which work on our types.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use fibra_runtime::unblock;

pub use std::os::unix::fs::{
    DirBuilderExt, DirEntryExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt,
};

use crate::fs::with_path;

/// Makes a symbolic link at `link` that points to `original`.
///
/// # Errors
///
/// As [`std::os::unix::fs::symlink`].
///
/// # Examples
///
/// ```
/// use fibra_io::fs::{self, File};
/// use fibra_io::os::unix::fs::{MetadataExt, chown, fchown, lchown, symlink};
///
/// let link = std::env::temp_dir().join(format!("fibra-symlink-{}", std::process::id()));
/// let file = link.with_extension("file");
/// let open = File::create(&file)?;
/// symlink(&file, &link)?;
/// assert_eq!(fs::read_link(&link)?, file);
/// assert!(fs::symlink_metadata(&link)?.is_symlink() && !fs::metadata(&link)?.is_symlink());
/// assert_eq!(fs::canonicalize(&link)?, fs::canonicalize(&file)?);
///
/// let owner = Some(open.metadata()?.uid());
/// chown(&link, owner, None)?;
/// lchown(&link, owner, None)?;
/// fchown(&open, owner, None)?;
/// assert_eq!(Some(fs::metadata(&file)?.uid()), owner);
/// # fs::remove_file(&link)?;
/// # fs::remove_file(&file)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn symlink<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> io::Result<()> {
    let original = original.as_ref();
    with_path(link, |link| std::os::unix::fs::symlink(original, link))
}

/// Changes the owner and the group of a file, and follows a symbolic link.
///
/// `None` leaves the owner or the group as it is.
///
/// # Errors
///
/// As [`std::os::unix::fs::chown`].
pub fn chown<P: AsRef<Path>>(dir: P, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
    with_path(dir, |dir| std::os::unix::fs::chown(dir, uid, gid))
}

/// Changes whose file an open file is.
///
/// # Errors
///
/// As [`std::os::unix::fs::fchown`].
pub fn fchown<F: AsFd>(fd: F, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
    let fd = fd.as_fd();
    unblock(|| std::os::unix::fs::fchown(fd, uid, gid))
}

/// Changes whose file it is; of a symbolic link itself.
///
/// # Errors
///
/// As [`std::os::unix::fs::lchown`].
pub fn lchown<P: AsRef<Path>>(dir: P, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
    with_path(dir, |dir| std::os::unix::fs::lchown(dir, uid, gid))
}

/// Changes the root directory of this process, for all of its threads.
///
/// # Errors
///
/// As [`std::os::unix::fs::chroot`].
///
/// # Examples
///
/// ```
/// use fibra_io::os::unix::fs::chroot;
///
/// assert!(chroot("/there is no such directory").is_err());
/// ```
pub fn chroot<P: AsRef<Path>>(dir: P) -> io::Result<()> {
    with_path(dir, |dir| std::os::unix::fs::chroot(dir))
}
