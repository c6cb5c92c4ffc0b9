//! Whether something is a terminal.

#![forbid(unsafe_code)]

use std::os::fd::AsFd;

/// Tells of a descriptor whether it is a terminal: [`std::io::IsTerminal`], which cannot be implemented for types that are not
/// std's. This one is for all that have a descriptor, std's types too.
///
/// # Examples
///
/// ```
/// use fibra_io::io::{self, IsTerminal};
///
/// let (reader, _writer) = io::pipe()?;
/// assert!(!reader.is_terminal());
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait IsTerminal: AsFd {
    /// Returns true if it is a terminal.
    fn is_terminal(&self) -> bool;
}

impl<T: AsFd + ?Sized> IsTerminal for T {
    fn is_terminal(&self) -> bool {
        std::io::IsTerminal::is_terminal(&self.as_fd())
    }
}
