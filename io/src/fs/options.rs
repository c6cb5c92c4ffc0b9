//! `OpenOptions`: how a file is to be opened.

#![forbid(unsafe_code)]

use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use fibra_runtime::unblock;

use super::File;
use crate::waiting::cancel::check_may_wait;
use crate::waiting::second_pool::detached;

/// Says how a file is to be opened: [`std::fs::OpenOptions`], for tasks.
///
/// Std's [`OpenOptionsExt`] works on it as well.
///
/// # Examples
///
/// ```
/// use std::io::Write;
/// use fibra_io::fs::{self, OpenOptions};
///
/// let path = std::env::temp_dir().join(format!("fibra-options-{}", std::process::id()));
/// for line in ["one\n", "two\n"] {
///     OpenOptions::new().create(true).append(true).open(&path)?.write_all(line.as_bytes())?;
/// }
/// assert_eq!(fs::read_to_string(&path)?, "one\ntwo\n");
/// assert!(OpenOptions::new().write(true).create_new(true).open(&path).is_err(), "it is there");
/// OpenOptions::new().read(true).write(true).truncate(true).open(&path)?;
/// assert_eq!(fs::metadata(&path)?.len(), 0);
/// fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    inner: std::fs::OpenOptions,
    reads: bool,
    writes: bool,
    appends: bool,
    flags: i32,
}

impl OpenOptions {
    /// Starts with all options off.
    #[expect(clippy::new_without_default, reason = "std's type has no default either")]
    #[must_use]
    pub fn new() -> OpenOptions {
        let inner = std::fs::OpenOptions::new();
        OpenOptions { inner, reads: false, writes: false, appends: false, flags: 0 }
    }

    /// Opens the file for reading.
    pub fn read(&mut self, read: bool) -> &mut OpenOptions {
        self.inner.read(read);
        self.reads = read;
        self
    }

    /// Opens the file for writing.
    pub fn write(&mut self, write: bool) -> &mut OpenOptions {
        self.inner.write(write);
        self.writes = write;
        self
    }

    /// Lets every write go to the end of the file.
    pub fn append(&mut self, append: bool) -> &mut OpenOptions {
        self.inner.append(append);
        self.appends = append;
        self
    }

    /// Empties the file that is there.
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.inner.truncate(truncate);
        self
    }

    /// Makes the file if it is not there.
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.inner.create(create);
        self
    }

    /// Makes the file, and fails if it is there.
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.inner.create_new(create_new);
        self
    }

    /// Opens the file at `path`, on the blocking pool.
    ///
    /// While the opens of many FIFOs and terminals wait, later ones wait for their turn; see
    /// [`max_blocking_threads`](fibra_runtime::Builder::max_blocking_threads).
    ///
    /// # Cancellation
    ///
    /// A cancellation point until the open has begun, which runs to its end then. The open of a FIFO or a device, which may wait
    /// for its other end, can be left at any time.
    ///
    /// # Errors
    ///
    /// As [`std::fs::OpenOptions::open`]; and `TimedOut` for a FIFO or a device if the task unwinds from a cancellation, or in
    /// destructors that end a cancelled task, since it might wait for the other end; or if the task is cancelled while it waits
    /// there, or in one that unwinds from a panic.
    pub fn open<P: AsRef<Path>>(&self, path: P) -> io::Result<File> {
        let path = path.as_ref();
        // Any other open runs to its end before the task goes on, so that it changes nothing later.
        let opened = unblock(|| match self.may_wait(path) {
            true => Ok(None),
            false => self.inner.open(path).map(Some),
        })?;
        if let Some(file) = opened {
            return Ok(File::from(file));
        }
        check_may_wait()?;
        let (options, path) = (self.inner.clone(), path.to_owned());
        detached(move || options.open(path)).map(File::from)
    }

    /// Returns true if an open of `path` may wait for something: a FIFO for its other end, a terminal for its line.
    fn may_wait(&self, path: &Path) -> bool {
        let kind = || std::fs::metadata(path).ok().map(|metadata| metadata.file_type());
        let one_way = self.reads != (self.writes || self.appends);
        self.flags & libc::O_NONBLOCK == 0
            && kind().is_some_and(|kind| kind.is_char_device() || kind.is_fifo() && one_way)
    }
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Cancellation
    ///
    /// As for [`OpenOptions::open`].
    ///
    /// # Errors
    ///
    /// As [`std::fs::File::open`].
    pub fn open<P: AsRef<Path>>(path: P) -> io::Result<File> {
        File::options().read(true).open(path)
    }

    /// Opens a file for writing: made if it is not there, emptied if it is.
    ///
    /// # Cancellation
    ///
    /// As for [`OpenOptions::open`].
    ///
    /// # Errors
    ///
    /// As [`std::fs::File::create`].
    pub fn create<P: AsRef<Path>>(path: P) -> io::Result<File> {
        File::options().write(true).create(true).truncate(true).open(path)
    }

    /// Makes a file for reading and writing.
    ///
    /// # Cancellation
    ///
    /// As for [`OpenOptions::open`].
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if it is there, and as [`std::fs::File::create_new`].
    pub fn create_new<P: AsRef<Path>>(path: P) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(path)
    }

    /// Starts to say how a file is to be opened.
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }
}

impl OpenOptionsExt for OpenOptions {
    fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.inner.mode(mode);
        self
    }

    fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
        self.inner.custom_flags(flags);
        self.flags = flags;
        self
    }
}
