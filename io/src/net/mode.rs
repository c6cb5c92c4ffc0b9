//! The mode of an open socket while the kernel copies into it or out of it.
//!
//! The calls for that have no flag for not waiting, so they go by the mode, which all handles of the socket share. Several of
//! them may copy at once: the first makes the socket non-blocking, and the last gives back the mode that it found, or that
//! somebody has asked for meanwhile.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use socket2::SockRef;

/// See the [module](self). The handles that `try_clone` makes have it in common.
#[derive(Debug, Default)]
pub(crate) struct Mode(Mutex<Loans>);

#[derive(Debug, Default)]
struct Loans {
    count: usize,
    /// The mode that is due when none is left.
    nonblocking: bool,
}

impl Mode {
    /// Makes the socket non-blocking for as long as the loan lasts.
    pub(crate) fn lend<'a>(&'a self, socket: BorrowedFd<'a>) -> io::Result<Loan<'a>> {
        let mut loans = self.loans();
        if loans.count == 0 {
            loans.nonblocking = SockRef::from(&socket).nonblocking()?;
            SockRef::from(&socket).set_nonblocking(true)?;
        }
        loans.count += 1;
        Ok(Loan { mode: self, socket })
    }

    /// Sets the mode, at once or when the last loan ends.
    pub(crate) fn set(&self, socket: BorrowedFd<'_>, nonblocking: bool) -> io::Result<()> {
        let mut loans = self.loans();
        loans.nonblocking = nonblocking;
        match loans.count {
            0 => SockRef::from(&socket).set_nonblocking(nonblocking),
            _ => Ok(()),
        }
    }

    /// Held over one system call, which does not wait.
    fn loans(&self) -> MutexGuard<'_, Loans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a socket non-blocking.
pub(crate) struct Loan<'a> {
    mode: &'a Mode,
    socket: BorrowedFd<'a>,
}

impl Loan<'_> {
    /// To be called before each call that relies on it, since others, whose handles we have not made, may change the mode.
    pub(crate) fn renew(&self) -> io::Result<()> {
        SockRef::from(&self.socket).set_nonblocking(true)
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut loans = self.mode.loans();
        loans.count -= 1;
        if loans.count == 0 {
            // It fails only on what is no open descriptor.
            let _ = SockRef::from(&self.socket).set_nonblocking(loans.nonblocking);
        }
    }
}
