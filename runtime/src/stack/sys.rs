//! The calls into the kernel, and all that is particular to one system.
//!
//! A backend owes: anonymous memory that costs nothing until it is touched, a way to forbid access to pages, and a way to
//! give pages back while their addresses stay mapped. Linux adds guards without mappings and keeps huge pages away; where
//! these are missing the portable half answers "unsupported", or does nothing when it was only a hint.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64;
use std::io;
use std::ops::Range;
use std::ptr;

pub(super) use rustix::param::page_size;

pub(super) use particular::{max_mappings, min_signal_stack};

/// Anonymous memory, readable and writable, and all zero; unmapped when dropped.
///
/// Invariant: code uses a page only while it holds the page's stack. Contents and access of a page are taken away by the
/// holder of its stack, or before the stack is handed out.
#[derive(Debug)]
pub(super) struct Mapping {
    start: usize,
    len: usize,
}

impl Mapping {
    /// Maps memory. Keeps huge pages away, since one touched page would cost two MiB.
    ///
    /// # Errors
    /// What `mmap` says.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | particular::MAP_FLAGS;
        // SAFETY: no address is asked for, so that no existing mapping is replaced; an anonymous mapping needs no descriptor.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = Mapping { start: start.expose_provenance(), len };
        // Only a hint.
        _ = particular::NO_HUGE_PAGES
            .map_or(Ok(()), |advice| mapping.advise(mapping.start..mapping.end(), advice));
        Ok(mapping)
    }

    pub(super) fn start(&self) -> usize {
        self.start
    }

    fn end(&self) -> usize {
        self.start + self.len
    }

    /// Forbids every access to the pages. Costs two mappings of the process.
    ///
    /// # Errors
    /// What `mprotect` says.
    pub(super) fn protect(&self, pages: Range<usize>) -> io::Result<()> {
        debug_assert!(self.start <= pages.start && pages.end <= self.end());
        // SAFETY: pages of this mapping, which no code uses, by the invariant.
        check(unsafe {
            libc::mprotect(ptr::with_exposed_provenance_mut(pages.start), pages.len(), libc::PROT_NONE)
        })
    }

    /// Makes the pages fault, without a mapping of their own.
    ///
    /// # Errors
    /// What the system says where it cannot.
    pub(super) fn mark_guard(&self, pages: Range<usize>) -> io::Result<()> {
        match particular::GUARD {
            Some(advice) => self.advise(pages, advice),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Gives the memory of the pages back; they stay mapped, and read as zero.
    pub(super) fn discard(&self, pages: Range<usize>) {
        // A refusal costs memory alone.
        _ = self.advise(pages, particular::DISCARD);
    }

    fn advise(&self, pages: Range<usize>, advice: libc::c_int) -> io::Result<()> {
        debug_assert!(self.start <= pages.start && pages.end <= self.end());
        // SAFETY: pages of this mapping, whose contents and access no code relies on, by the invariant.
        check(unsafe { libc::madvise(ptr::with_exposed_provenance_mut(pages.start), pages.len(), advice) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is what `new` has mapped. No stack of it is left.
        let result = check(unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.start), self.len) });
        debug_assert!(result.is_ok(), "munmap: {result:?}");
    }
}

/// Writes to standard error, async-signal-safe. An error leaves nothing to be done.
pub(super) fn write_to_stderr(bytes: &[u8]) {
    _ = rustix::io::write(rustix::stdio::stderr(), bytes);
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Fetches the line of that address into the cache, without waiting for it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    // SAFETY: every x86-64 has SSE, and a prefetch may be of any address: it reads nothing that the program sees.
    unsafe { x86_64::_mm_prefetch::<{ x86_64::_MM_HINT_T0 }>(ptr::with_exposed_provenance(address)) };
}

/// Fetches nothing.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn prefetch(_: usize) {}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod particular {
    /// Not in `libc` yet.
    const MADV_GUARD_INSTALL: libc::c_int = 102;

    pub(super) const MAP_FLAGS: libc::c_int = libc::MAP_NORESERVE;
    pub(super) const DISCARD: libc::c_int = libc::MADV_DONTNEED;
    pub(super) const GUARD: Option<libc::c_int> = Some(MADV_GUARD_INSTALL);
    pub(super) const NO_HUGE_PAGES: Option<libc::c_int> = Some(libc::MADV_NOHUGEPAGE);

    /// Returns how many mappings a process may have, if the system says.
    pub(in super::super) fn max_mappings() -> Option<usize> {
        std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
    }

    /// Returns the least size of a signal stack: what the kernel writes there when a handler starts.
    pub(in super::super) fn min_signal_stack() -> usize {
        rustix::param::linux_minsigstksz().max(libc::MINSIGSTKSZ)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod particular {
    #[cfg(target_os = "openbsd")]
    pub(super) const MAP_FLAGS: libc::c_int = libc::MAP_STACK;
    #[cfg(not(target_os = "openbsd"))]
    pub(super) const MAP_FLAGS: libc::c_int = 0;
    pub(super) const DISCARD: libc::c_int = libc::MADV_FREE;
    pub(super) const GUARD: Option<libc::c_int> = None;
    pub(super) const NO_HUGE_PAGES: Option<libc::c_int> = None;

    pub(in super::super) fn max_mappings() -> Option<usize> {
        None
    }

    pub(in super::super) fn min_signal_stack() -> usize {
        libc::MINSIGSTKSZ
    }
}
