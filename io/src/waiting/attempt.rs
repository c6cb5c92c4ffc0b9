//! One non-blocking try of a system call.

#![forbid(unsafe_code)]

use std::io;

use crate::readiness::Clearing;
use crate::readiness::source::Source;
use crate::sys::Direction;

/// What a system call achieved.
pub(crate) enum Attempt<T> {
    /// Complete transfer: the next call may find more.
    Done(T),
    /// Short transfer: the next call would block.
    Drained(T),
}

impl<T> Attempt<T> {
    pub(crate) fn value(self) -> T {
        match self {
            Attempt::Done(value) | Attempt::Drained(value) => value,
        }
    }
}

impl Attempt<usize> {
    /// Makes the outcome of a write of `n` bytes out of `len`.
    #[inline]
    pub(crate) fn written(n: usize, len: usize) -> Attempt<usize> {
        if n < len { Attempt::Drained(n) } else { Attempt::Done(n) }
    }
}

impl Source {
    /// Tries the call if it may succeed. `None`: wait first.
    #[inline]
    pub(crate) fn attempt<T>(
        &self,
        direction: Direction,
        call: &mut impl FnMut() -> io::Result<Attempt<T>>,
    ) -> Option<io::Result<T>> {
        loop {
            let seen = self.readiness().load();
            if !seen.is_ready(direction) {
                return None;
            }
            match call() {
                Ok(Attempt::Done(value)) => return Some(Ok(value)),
                Ok(Attempt::Drained(value)) => {
                    self.readiness().drained(direction, seen);
                    return Some(Ok(value));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.readiness().blocked(direction, seen) == Clearing::Cleared {
                        return None;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
