//! `OpenOptions`: how a file is to be opened.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use fibra_runtime::{sleep, unblock};
use socket2::SockRef;

use super::File;
use crate::waiting::cancel::check_may_wait;
use crate::waiting::second_pool::detached;

#[cfg(test)]
mod tests;

/// The time between two opens where the second pool could open what an open without waiting could not.
const PAUSE: Duration = Duration::from_millis(5);

/// Flags with which no open waits.
#[cfg(any(target_os = "linux", target_os = "android"))]
const NEVER_WAITS: i32 = libc::O_NONBLOCK | libc::O_PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const NEVER_WAITS: i32 = libc::O_NONBLOCK;

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
    truncates: bool,
    creates: bool,
    creates_new: bool,
    flags: i32,
}

impl OpenOptions {
    /// Starts with all options off.
    #[expect(clippy::new_without_default, reason = "std's type has no default either")]
    #[must_use]
    pub fn new() -> OpenOptions {
        OpenOptions {
            inner: std::fs::OpenOptions::new(),
            reads: false,
            writes: false,
            appends: false,
            truncates: false,
            creates: false,
            creates_new: false,
            flags: 0,
        }
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
        self.truncates = truncate;
        self
    }

    /// Makes the file if it is not there.
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.inner.create(create);
        self.creates = create;
        self
    }

    /// Makes the file, and fails if it is there.
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.inner.create_new(create_new);
        self.creates_new = create_new;
        self
    }

    /// Opens the file at `path`, on the blocking pool.
    ///
    /// While the opens of many FIFOs, terminals and files under a lease wait, later ones wait for their turn; see
    /// [`max_blocking_threads`](fibra_runtime::Builder::max_blocking_threads).
    ///
    /// # Cancellation
    ///
    /// A cancellation point until the open has begun, which runs to its end then: nothing is made or emptied later. The open of
    /// a FIFO or a device, which may wait for its other end, can be left at any time. So can the wait for another process to give
    /// up its lease of the file.
    ///
    /// # Errors
    ///
    /// As [`std::fs::OpenOptions::open`]; and `TimedOut` for a FIFO, a device or a file under a lease if the task unwinds from a
    /// cancellation, or in destructors that end a cancelled task, since it might wait for another process; or if the task is
    /// cancelled while it waits there, or in one that unwinds from a panic.
    pub fn open<P: AsRef<Path>>(&self, path: P) -> io::Result<File> {
        let path = path.as_ref();
        loop {
            // It runs to its end before the task goes on, so that it changes nothing later.
            match unblock(|| self.open_in_bounded_time(path))? {
                Opened::File(file) => return Ok(File::from(file)),
                Opened::MayWait => {
                    check_may_wait()?;
                    let (options, path) = (self.waiting(), path.to_owned());
                    match detached(move || options.open(path)) {
                        // The lease is given up, or another file has taken the name: it is to be made or emptied.
                        Ok(file) if !self.may_wait(&file.metadata()?) => {
                            drop(file);
                            // The holder may have taken a lease again.
                            sleep(PAUSE);
                        }
                        Err(error) if error.kind() == ErrorKind::NotFound && self.creates => {}
                        outcome => return outcome.map(File::from),
                    }
                }
            }
        }
    }

    /// Opens what ends by itself. Blocks the thread.
    fn open_in_bounded_time(&self, path: &Path) -> io::Result<Opened> {
        if self.never_wait() {
            return self.inner.open(path).map(Opened::File);
        }
        match fs::metadata(path) {
            Ok(metadata) if self.may_wait(&metadata) => Ok(Opened::MayWait),
            // For such a device the flag has a meaning of its own.
            Ok(metadata) if metadata.file_type().is_block_device() => self.inner.open(path).map(Opened::File),
            _ => self.open_without_waiting(path),
        }
    }

    /// Returns true if no open with these options waits: it opens no file that is there, or std refuses it.
    fn never_wait(&self) -> bool {
        let writes = self.writes || self.appends;
        let is_refused = (self.creates || self.truncates) && !writes || self.truncates && self.appends;
        self.flags & NEVER_WAITS != 0 || self.creates_new || is_refused
    }

    /// Opens what was no FIFO or device a moment ago, and does not wait if it has become one or is under a lease.
    fn open_without_waiting(&self, path: &Path) -> io::Result<Opened> {
        let mut options = self.inner.clone();
        let file = match options.custom_flags(self.flags | libc::O_NONBLOCK).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Opened::MayWait),
            // A FIFO without a reader.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                return match fs::metadata(path) {
                    Ok(metadata) if self.may_wait(&metadata) => Ok(Opened::MayWait),
                    _ => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        if self.may_wait(&file.metadata()?) {
            return Ok(Opened::MayWait);
        }
        SockRef::from(&file).set_nonblocking(false)?;
        Ok(Opened::File(file))
    }

    /// Returns the options for an open that may be left, and so changes no file.
    fn waiting(&self) -> fs::OpenOptions {
        let mut options = self.inner.clone();
        options.create(false).truncate(false);
        options.custom_flags(self.flags & !(libc::O_CREAT | libc::O_TRUNC));
        options
    }

    /// Returns true if an open of such a file may wait: a FIFO for its other end, a terminal for its line.
    fn may_wait(&self, metadata: &fs::Metadata) -> bool {
        let kind = metadata.file_type();
        let one_way = self.reads != (self.writes || self.appends);
        kind.is_char_device() || kind.is_fifo() && one_way
    }
}

/// The result of an open that does not wait.
#[derive(Debug)]
enum Opened {
    File(fs::File),
    /// A FIFO or a device, or a file of which another process has a lease.
    MayWait,
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
