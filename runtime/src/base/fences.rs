//! The two fences of a store-load pair of which one side runs often and the other hardly ever.
//!
//! A pair of full fences orders "I store, then I look at yours" on both sides; each costs a locked instruction. Linux can
//! run a full fence on every thread of the process at the asking of one (membarrier, private and expedited, since 4.14): then
//! the frequent side only has to keep the compiler from moving its accesses, and the rare side pays a system call that
//! interrupts the processors where the others run, a few microseconds.
//!
//! Proof: the asker's call returns after each thread of the process has passed a full fence at some point of its program.
//! If that point comes before the frequent side's store, its later look sees what the asker stored before the call; if it
//! comes after, the asker's look after the call sees that store.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

use crate::base::sys;

/// Decided once, before the first pair is used.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

/// Makes the pair ready for use. To be called before anybody uses it; the later calls do nothing. The first one may take ten
/// milliseconds.
pub(crate) fn prepare() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // Relaxed: who uses the pair came to it through this call, or from a thread that did.
    ONCE.call_once(|| ASYMMETRIC.store(sys::register_membarrier(), Ordering::Relaxed));
}

/// The fence of the frequent side.
#[inline]
pub(crate) fn light_fence() {
    match has_bare_light_fence() {
        true => bare_light_fence(),
        false => fence(Ordering::SeqCst),
    }
}

/// True if the fence of the frequent side costs nothing, which does not change again.
#[inline]
pub(crate) fn has_bare_light_fence() -> bool {
    // Relaxed: as in `prepare`; who sees it true has the call, which was asked for before.
    ASYMMETRIC.load(Ordering::Relaxed)
}

/// The same, where [`has_bare_light_fence`].
#[inline]
pub(crate) fn bare_light_fence() {
    compiler_fence(Ordering::SeqCst);
}

/// The fence of the rare side.
pub(crate) fn heavy_fence() {
    fence(Ordering::SeqCst);
    if has_bare_light_fence() {
        sys::membarrier();
    }
}
