//! Guards: the pages at the low end of a stack whose touch is an overflow.
//!
//! | kind | made by | costs | missing where |
//! | --- | --- | --- | --- |
//! | marker | `madvise(MADV_GUARD_INSTALL)` | an entry in the page table | Linux before 6.13, locked memory, other systems |
//! | protection | `mprotect(PROT_NONE)` | two mappings of the process | nowhere, but the mappings run out |
//!
//! Markers survive `MADV_DONTNEED` and `fork`, and go with the mapping.

#![forbid(unsafe_code)]

use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::stack::sys::{self, Mapping};

/// Chooses the guards of a runtime's stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackGuards {
    /// Markers in the page table where the kernel has them, page protection elsewhere.
    #[default]
    Auto,
    /// Markers in the page table only (`MADV_GUARD_INSTALL`); without them no stack can be had.
    Page,
    /// Page protection only (`mprotect`), at two mappings a stack.
    Protect,
}

/// Tells what a guard was made of in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    Marker,
    Protection,
}

/// Makes the guard of one stack. Doing it twice is harmless.
pub(super) fn install(guards: StackGuards, mapping: &Mapping, pages: Range<usize>) -> io::Result<Made> {
    if guards != StackGuards::Protect {
        match mapping.mark_guard(pages.clone()) {
            Ok(()) => return Ok(Made::Marker),
            Err(error) if guards == StackGuards::Page => return Err(no_markers(&error)),
            Err(_) => {}
        }
    }
    protect(mapping, pages).map(|()| Made::Protection)
}

/// Tells that a region with so many protected guards is unmapped.
pub(super) fn retire(protected: usize) {
    // Relaxed: a count for a limit; it publishes nothing.
    PROTECTED.fetch_sub(protected, Ordering::Relaxed);
}

/// How many guards of this process are made of page protection.
static PROTECTED: AtomicUsize = AtomicUsize::new(0);

/// Protects one guard, unless mappings run short: the process that has none left cannot even allocate.
fn protect(mapping: &Mapping, pages: Range<usize>) -> io::Result<()> {
    // Relaxed: a count for a limit; it publishes nothing.
    let before = PROTECTED.fetch_add(1, Ordering::Relaxed);
    let result = if before < most_protected() {
        mapping.protect(pages)
    } else {
        Err(io::Error::from_raw_os_error(libc::ENOMEM))
    };
    result.map_err(|error| {
        retire(1);
        no_mappings(error, before)
    })
}

/// Returns the most guards by protection: two mappings each, with a sixteenth of all mappings left for the
/// rest of the process.
fn most_protected() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| sys::max_mappings().map_or(usize::MAX, |mappings| (mappings - mappings / 16) / 2))
}

fn no_mappings(error: io::Error, guarded: usize) -> io::Error {
    if error.raw_os_error() != Some(libc::ENOMEM) {
        return error;
    }
    let text = format!(
        "no mapping left for the guard of another stack: {guarded} stacks have one each; \
         raise the sysctl vm.max_map_count, or use Linux 6.13 or later, whose guards need no mapping"
    );
    io::Error::new(io::ErrorKind::OutOfMemory, text)
}

fn no_markers(error: &io::Error) -> io::Error {
    let text = format!("no guard by MADV_GUARD_INSTALL (Linux 6.13 or later, memory not locked): {error}");
    io::Error::new(io::ErrorKind::Unsupported, text)
}
