//! How a file is to be opened.

#![forbid(unsafe_code)]

use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use fibra_runtime::wait;

use super::File;
use crate::detached::detached;
use crate::op::cancelled;

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
/// fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions(std::fs::OpenOptions);

impl OpenOptions {
    /// Starts with all options off.
    #[expect(clippy::new_without_default, reason = "std's type has no default either")]
    #[must_use]
    pub fn new() -> OpenOptions {
        OpenOptions(std::fs::OpenOptions::new())
    }

    /// Opens the file for reading.
    pub fn read(&mut self, read: bool) -> &mut OpenOptions {
        self.0.read(read);
        self
    }

    /// Opens the file for writing.
    pub fn write(&mut self, write: bool) -> &mut OpenOptions {
        self.0.write(write);
        self
    }

    /// Lets every write go to the end of the file.
    pub fn append(&mut self, append: bool) -> &mut OpenOptions {
        self.0.append(append);
        self
    }

    /// Empties the file that is there.
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.0.truncate(truncate);
        self
    }

    /// Makes the file if it is not there.
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.0.create(create);
        self
    }

    /// Makes the file, and fails if it is there.
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.0.create_new(create_new);
        self
    }

    /// Opens the file at `path`, on the blocking pool.
    ///
    /// # Cancellation
    ///
    /// A cancellation point all along: what is opened after that is closed again. (A file that is to be made may be made.)
    ///
    /// # Errors
    ///
    /// As [`std::fs::OpenOptions::open`]; and `TimedOut` for a FIFO if the task unwinds from a cancellation, since it might wait
    /// for the other end.
    pub fn open<P: AsRef<Path>>(&self, path: P) -> io::Result<File> {
        let (options, path) = (self.0.clone(), path.as_ref().to_owned());
        let may_wait = !wait::unwinds_from_cancel();
        let opened = detached(move || match may_wait || !is_fifo(&path) {
            true => options.open(path).map(File::from).map(Some),
            false => Ok(None),
        })?;
        opened.ok_or_else(cancelled)
    }
}

fn is_fifo(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

impl OpenOptionsExt for OpenOptions {
    fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.0.mode(mode);
        self
    }

    fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
        self.0.custom_flags(flags);
        self
    }
}
