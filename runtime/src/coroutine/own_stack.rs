//! A stack for one call of a thread that runs no task.

#![forbid(unsafe_code)]

use std::io;

use corosensei::stack::DefaultStack;

use crate::stack::size;

/// Runs `f` on a new stack of `size` bytes. `f` does not unwind.
///
/// # Errors
/// Fails where the size fits into no address space, or the system has no memory.
pub(crate) fn on_own_stack(size: usize, f: impl FnOnce()) -> io::Result<()> {
    size::check_fits(size)?;
    corosensei::on_stack(DefaultStack::new(size)?, f);
    Ok(())
}
