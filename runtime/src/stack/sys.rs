//! The calls into the kernel, and all that is particular to one system.
//!
//! A backend owes: anonymous memory that costs nothing until it is touched, a way to forbid access to pages, and a way to
//! give pages back while their addresses stay mapped. Linux adds guards without mappings and keeps huge pages away; where
//! these are missing the portable half answers "unsupported", or does nothing when it was only a hint.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The size of a page of memory in bytes.
pub(super) fn page_size() -> usize {
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: every thread computes the same number; nothing is published by it.
    match PAGE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: sysconf takes no pointer and has no precondition.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let page = usize::try_from(page).unwrap_or(4096);
            PAGE.store(page, Ordering::Relaxed);
            page
        }
        page => page,
    }
}

/// Maps `len` bytes of fresh memory, readable and writable, and returns their lowest address.
pub(super) fn map(len: usize) -> io::Result<usize> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | particular::MAP_FLAGS;
    // SAFETY: no address is asked for, so that no existing mapping is replaced; an anonymous mapping needs no descriptor.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start.expose_provenance()) }
}

/// Unmaps `len` bytes from `start`.
///
/// # Safety
///
/// The range is one that [`map`] returned, and nothing uses it any more.
pub(super) unsafe fn unmap(start: usize, len: usize) {
    // SAFETY: the caller says that the range is mapped, is ours, and is unused.
    let failed = unsafe { libc::munmap(at(start), len) } != 0;
    debug_assert!(!failed, "munmap: {}", io::Error::last_os_error());
}

/// Whole pages of one mapping made by [`map`], in which nothing is in use.
pub(super) struct Unused {
    start: usize,
    len: usize,
}

impl Unused {
    /// # Safety
    ///
    /// The range is what the type says, until this is dropped.
    pub(super) unsafe fn new(start: usize, len: usize) -> Self {
        Unused { start, len }
    }

    /// Forbids every access by page protection; this splits the mapping.
    pub(super) fn protect(&self) -> io::Result<()> {
        // SAFETY: the pages are ours and unused, so that no code is surprised to lose access.
        check(unsafe { libc::mprotect(at(self.start), self.len, libc::PROT_NONE) })
    }

    /// Makes every access fault, without a mapping of its own where the system can. It outlives [`discard`](Self::discard).
    pub(super) fn mark_guard(&self) -> io::Result<()> {
        // SAFETY: the pages are ours and unused, so their contents and access may go.
        unsafe { particular::mark_guard(self.start, self.len) }
    }

    /// Gives the memory back; the addresses stay mapped, and hold zeroes or the old bytes.
    ///
    /// Best effort: memory that is locked stays.
    pub(super) fn discard(&self) {
        // SAFETY: the pages are ours, and no code relies on what they hold.
        unsafe { libc::madvise(at(self.start), self.len, particular::DISCARD) };
    }
}

pub(super) use particular::{forbid_huge_pages, max_mappings, min_signal_stack};

fn at(address: usize) -> *mut libc::c_void {
    std::ptr::with_exposed_provenance_mut(address)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod particular {
    use std::io;

    /// Linux 6.13: puts the guard into the page table, not into a mapping of its own.
    const MADV_GUARD_INSTALL: libc::c_int = 102;

    pub(super) const MAP_FLAGS: libc::c_int = libc::MAP_NORESERVE;
    pub(super) const DISCARD: libc::c_int = libc::MADV_DONTNEED;

    /// Asks for small pages only, so that touching one page of a stack never makes 2 MiB resident. A hint.
    pub(in super::super) fn forbid_huge_pages(start: usize, len: usize) {
        // SAFETY: this advice changes neither contents nor access; on a range that is not mapped it only fails.
        unsafe { libc::madvise(super::at(start), len, libc::MADV_NOHUGEPAGE) };
    }

    /// Makes every access to a range fault, without a mapping of its own. It outlives a discard.
    ///
    /// # Safety
    ///
    /// The range consists of whole pages of one mapping made by [`map`](super::map), and nothing in it is in use.
    pub(in super::super) unsafe fn mark_guard(start: usize, len: usize) -> io::Result<()> {
        // SAFETY: the caller says that the pages are ours and unused, so their contents and access may go.
        super::check(unsafe { libc::madvise(super::at(start), len, MADV_GUARD_INSTALL) })
    }

    /// Returns how many mappings a process may have, where that is bounded and known.
    pub(in super::super) fn max_mappings() -> Option<usize> {
        std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
    }

    /// Returns the bytes that the kernel needs at least to deliver a signal on this processor.
    pub(in super::super) fn min_signal_stack() -> usize {
        // SAFETY: getauxval reads a table of the process and has no precondition; an unknown entry is 0.
        let by_kernel = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) };
        usize::try_from(by_kernel).unwrap_or(0).max(libc::MINSIGSTKSZ)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod particular {
    use std::io;

    #[cfg(target_os = "openbsd")]
    pub(super) const MAP_FLAGS: libc::c_int = libc::MAP_STACK;
    #[cfg(not(target_os = "openbsd"))]
    pub(super) const MAP_FLAGS: libc::c_int = 0;
    pub(super) const DISCARD: libc::c_int = libc::MADV_FREE;

    pub(in super::super) fn forbid_huge_pages(_start: usize, _len: usize) {}

    /// # Safety
    ///
    /// None is needed: this only says that there is no such guard here.
    pub(in super::super) unsafe fn mark_guard(_start: usize, _len: usize) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(in super::super) fn max_mappings() -> Option<usize> {
        None
    }

    pub(in super::super) fn min_signal_stack() -> usize {
        libc::MINSIGSTKSZ
    }
}
