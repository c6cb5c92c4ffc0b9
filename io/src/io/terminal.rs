//! `IsTerminal`: tells whether a descriptor is a terminal.

#![forbid(unsafe_code)]

use std::os::fd::AsFd;

/// Tells whether a descriptor is a terminal.
///
/// It stands in for [`std::io::IsTerminal`], which only types of std can implement. All types with a descriptor implement
/// this trait, types of std too.
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
