//! `File`, with the methods of [`std::fs::File`].

#![forbid(unsafe_code)]

use std::fs::{self, FileTimes, Metadata, Permissions, TryLockError};
use std::io;
use std::time::SystemTime;

use fibra_runtime::{unblock, wait};

use super::lock::lock_by;
use crate::waiting::convert::{Wraps, forward};
use crate::waiting::stream_file::StreamFile;

/// An open file: [`std::fs::File`], for tasks.
///
/// Reading and writing put the task to sleep, never the thread; in a plain thread they block it. A
/// read of what is in memory does neither. Positioned reads and writes are those of std's trait
/// [`FileExt`](std::os::unix::fs::FileExt). The file is closed when it is dropped.
///
/// A FIFO, a terminal or a device works as well: reads and writes wait until it is ready.
///
/// # Cancellation
///
/// A read or a write that waits is a cancellation point. The transfer of a FIFO, a terminal or a device
/// runs on another thread, with a buffer of its own. If another process takes the input or the room in
/// between, that thread waits. A cancelled task leaves the thread running, and the data that it reads
/// later is lost.
///
/// # Fairness
///
/// Reads and writes of one file at its position run one at a time, in no promised order.
///
/// # Differences from std
///
/// * A write into a FIFO or a terminal may be short; a read of a terminal waits for input also
///   where its `VMIN` is zero.
/// * The mode (`O_NONBLOCK`) of a FIFO, terminal or device is read when the `File` is made; later
///   changes have no effect in tasks.
/// * `Arc<File>` has none of the traits, by the rules of the language; a `&File` out of it has all.
/// * [`copy_to`](File::copy_to) is an addition.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Seek, Write};
/// use std::os::unix::fs::FileExt;
/// use fibra_io::fs::{self, File};
///
/// let path = std::env::temp_dir().join(format!("fibra-file-{}", std::process::id()));
/// let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
/// file.write_all(b"some bytes")?;
/// file.rewind()?;
/// let mut text = String::new();
/// file.read_to_string(&mut text)?;
/// assert_eq!(text, "some bytes");
/// file.write_all_at(b"more", 0)?;
/// assert_eq!(fs::read(&path)?, b"more bytes");
/// # fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// What the system keeps of a file, and locks:
///
/// ```
/// use std::io::{Seek, SeekFrom, Write};
/// use std::os::unix::fs::PermissionsExt;
/// use std::time::SystemTime;
/// use fibra_io::fs::{self, File, FileTimes, Permissions};
///
/// let path = std::env::temp_dir().join(format!("fibra-file-two-{}", std::process::id()));
/// let mut file = File::create_new(&path)?;
/// file.write_all(b"four")?;
/// file.sync_data()?;
/// file.set_len(9)?;
/// file.set_permissions(Permissions::from_mode(0o600))?;
/// file.set_modified(SystemTime::UNIX_EPOCH)?;
/// file.set_times(FileTimes::new().set_accessed(SystemTime::now()))?;
/// file.sync_all()?;
/// let metadata = file.metadata()?;
/// assert_eq!((metadata.len(), metadata.modified()?), (9, SystemTime::UNIX_EPOCH));
/// assert_eq!(file.try_clone()?.seek(SeekFrom::Current(0))?, 4);
///
/// let other = File::open(&path)?;
/// file.lock()?;
/// assert!(other.try_lock().is_err() && other.try_lock_shared().is_err());
/// file.unlock()?;
/// file.lock_shared()?;
/// assert!(other.try_lock().is_err() && other.try_lock_shared().is_ok());
/// # fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct File(pub(crate) StreamFile<std::fs::File>);

impl File {
    pub(super) fn std(&self) -> &std::fs::File {
        self.0.expose()
    }

    /// Counts an attempt.
    fn look(&self) -> &std::fs::File {
        wait::charge();
        self.std()
    }

    /// Waits until all data and metadata are on the disk.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// What `fsync(2)` says.
    pub fn sync_all(&self) -> io::Result<()> {
        unblock(|| self.std().sync_all())
    }

    /// Waits until all data is on the disk.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// What `fdatasync(2)` says.
    pub fn sync_data(&self) -> io::Result<()> {
        unblock(|| self.std().sync_data())
    }

    /// Cuts the file off, or extends it with zeroes. The position stays where it is.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// What `ftruncate(2)` says.
    pub fn set_len(&self, size: u64) -> io::Result<()> {
        unblock(|| self.std().set_len(size))
    }

    /// Tells what the system knows of the file.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool; from then on it runs to its end.
    ///
    /// # Errors
    ///
    /// What `fstat(2)` says.
    pub fn metadata(&self) -> io::Result<Metadata> {
        unblock(|| self.std().metadata())
    }

    /// Makes a second handle of this open file, with a descriptor of its own.
    ///
    /// The handles share the position.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<File> {
        let clone = self.std().try_clone()?;
        Ok(File(self.0.with_clone(clone)))
    }

    /// Changes the permissions of the file.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// What `fchmod(2)` says.
    pub fn set_permissions(&self, perm: Permissions) -> io::Result<()> {
        unblock(|| self.std().set_permissions(perm))
    }

    /// Changes the times that the system keeps of the file.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// What `futimens(2)` says.
    pub fn set_times(&self, times: FileTimes) -> io::Result<()> {
        unblock(|| self.std().set_times(times))
    }

    /// Changes the time at which the file was modified last.
    ///
    /// # Cancellation
    ///
    /// A cancellation point until it has begun on the blocking pool, with nothing done; from then
    /// on it runs to its end.
    ///
    /// # Errors
    ///
    /// What `futimens(2)` says.
    pub fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.set_times(FileTimes::new().set_modified(time))
    }

    /// Waits until the file can be locked for this handle alone, and locks it.
    ///
    /// The lock belongs to the open file, so handles that [`try_clone`](File::try_clone) has made
    /// hold it together; it ends with [`unlock`](File::unlock) or with the last of them. It is
    /// advisory: it stops only code that locks as well. Of two such handles that lock in different
    /// ways, the later one changes the lock of the other, as the system has it.
    ///
    /// # Fairness
    ///
    /// None. The system does not report that a lock came free. So a waiting task tries again after a
    /// millisecond, and then after pauses that double up to 64 milliseconds; it may be late by the last
    /// pause. Plain threads and other processes wait in the system and come before it. Tasks of one
    /// process do better with a mutex.
    ///
    /// # Cancellation
    ///
    /// A wait is a cancellation point, and has taken no lock. It may have dropped the lock of another
    /// kind that a handle of this open file held.
    ///
    /// # Errors
    ///
    /// What `flock(2)` says; and `TimedOut` where it would have to wait in a task that unwinds from
    /// a cancellation, or in destructors that end a cancelled task.
    pub fn lock(&self) -> io::Result<()> {
        lock_by(self.std(), fs::File::lock, fs::File::try_lock)
    }

    /// Waits until no exclusive lock is held on the file, and takes a shared lock.
    ///
    /// Otherwise it behaves as [`lock`](File::lock) does.
    ///
    /// # Cancellation
    ///
    /// As for [`lock`](File::lock).
    ///
    /// # Errors
    ///
    /// As for [`lock`](File::lock).
    pub fn lock_shared(&self) -> io::Result<()> {
        lock_by(self.std(), fs::File::lock_shared, fs::File::try_lock_shared)
    }

    forward! { self => self.look();
        /// Locks the file for this handle alone, if that can be had at once.
        ///
        /// It counts against the operation budget, so the caller may yield: a loop over it lets the
        /// owner run.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if another handle has a lock, and what `flock(2)` says.
        fn try_lock() -> Result<(), TryLockError>;

        /// Locks the file beside other shared locks, if that can be had at once.
        ///
        /// The caller may yield, as in [`try_lock`](File::try_lock).
        ///
        /// # Errors
        ///
        /// `WouldBlock` if another handle has an exclusive lock, and what `flock(2)` says.
        fn try_lock_shared() -> Result<(), TryLockError>;
    }

    forward! { self => self.std();
        /// Releases the lock.
        ///
        /// # Errors
        ///
        /// What `flock(2)` says.
        fn unlock() -> io::Result<()>;
    }
}
