//! The alternate signal stack of a thread, since an overflowed stack has no room for signal
//! handlers.

use std::io;
use std::marker::PhantomData;
use std::{mem, ptr};

use crate::stack::sys::{self, Unused};

/// What handlers may use beyond the kernel's own part: ours little, those that are chained to (a backtrace) more.
const ROOM: usize = 64 * 1024;

/// The alternate signal stack of the current thread; undone when dropped, on that thread.
#[must_use = "the alternate stack goes when this is dropped"]
pub(crate) struct AltStack {
    /// The mapping of our own, if the thread had none: its guard page comes first.
    own: Option<(usize, usize)>,
    /// Stays on its thread, whose kernel state it is.
    _not_send: PhantomData<*mut ()>,
}

impl AltStack {
    /// Keeps the alternate stack that the thread has (std gives its threads one), or makes one.
    pub(super) fn ensure() -> io::Result<Self> {
        let own = if is_set(&current()?) { None } else { Some(make()?) };
        Ok(Self { own, _not_send: PhantomData })
    }
}

impl Drop for AltStack {
    fn drop(&mut self) {
        let Some((start, len)) = self.own else { return };
        let ours = current().is_ok_and(|stack| stack.ss_sp.addr() == start + sys::page_size());
        if ours && set(ptr::null_mut(), 0, libc::SS_DISABLE).is_err() {
            // A handler runs on it right now: leave it mapped.
            return;
        }
        // SAFETY: `make` mapped the range, and the thread has no longer, or never again had, its alternate stack there.
        unsafe { sys::unmap(start, len) };
    }
}

fn make() -> io::Result<(usize, usize)> {
    let page = sys::page_size();
    let len = (sys::min_signal_stack() + ROOM).next_multiple_of(page) + page;
    let start = sys::map(len)?;
    // SAFETY: the first page of a mapping made just now.
    let guard = unsafe { Unused::new(start, page) };
    let made =
        guard.protect().and_then(|()| set(ptr::with_exposed_provenance_mut(start + page), len - page, 0));
    made.inspect_err(|_| {
        // SAFETY: nothing uses the mapping, since it did not become the alternate stack.
        unsafe { sys::unmap(start, len) }
    })?;
    Ok((start, len))
}

fn is_set(stack: &libc::stack_t) -> bool {
    stack.ss_flags & libc::SS_DISABLE == 0 && !stack.ss_sp.is_null()
}

fn current() -> io::Result<libc::stack_t> {
    // SAFETY: all-zero bytes are a valid `stack_t` (a null pointer and numbers).
    let mut stack = unsafe { mem::zeroed() };
    // SAFETY: the first argument may be null (change nothing), the second is a writable `stack_t`.
    let result = unsafe { libc::sigaltstack(ptr::null(), &mut stack) };
    if result == 0 { Ok(stack) } else { Err(io::Error::last_os_error()) }
}

fn set(start: *mut libc::c_void, len: usize, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `stack_t` (a null pointer and numbers).
    let mut stack: libc::stack_t = unsafe { mem::zeroed() };
    (stack.ss_sp, stack.ss_size, stack.ss_flags) = (start, len, flags);
    // SAFETY: the callers pass memory that stays mapped while it is set, or SS_DISABLE; the old one is not asked for.
    let result = unsafe { libc::sigaltstack(&stack, ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
