//! What the processor may be told of what comes next.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Fetches the line of that address into the cache, without waiting for it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    // SAFETY: every x86-64 has SSE, and a prefetch may be of any address: it reads nothing that the program sees.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::with_exposed_provenance(address)) };
}

/// Fetches nothing.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn prefetch(_: usize) {}
