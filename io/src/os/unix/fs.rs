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
pub fn symlink<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> io::Result<()> {
    let original = original.as_ref();
    with_path(link, |link| std::os::unix::fs::symlink(original, link))
}

/// Changes whose file it is; of a symbolic link, what it points to. `None` leaves that as it is.
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
pub fn chroot<P: AsRef<Path>>(dir: P) -> io::Result<()> {
    with_path(dir, |dir| std::os::unix::fs::chroot(dir))
}
