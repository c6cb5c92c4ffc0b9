//! Asymmetric fences of a store-load pair: one side runs often, its partner rarely.
//!
//! A pair of full fences orders "I store, then I look at yours" on both sides; each costs a locked
//! instruction. On Linux one thread can run a full fence on all threads of the process (membarrier,
//! private and expedited, since 4.14). Then the frequent side only has to keep the compiler from
//! moving its accesses. The rare side pays a system call, which interrupts the processors where the
//! other threads run.
//!
//! Proof: the call of the rare side returns after each thread of the process has passed a full
//! fence at some point of its program. If that point comes before the frequent side's store, its
//! later look sees what the rare side stored before the call. If it comes after, the rare side's
//! look after the call sees that store.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

use crate::base::sys;

/// Decided once, before the first pair is used.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

/// Makes the pair ready. Must be called before its first use.
///
/// Later calls do nothing. The first call may take ten milliseconds.
pub(crate) fn prepare() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // Relaxed: a user of the pair has made this call, or was started by a thread that did.
    ONCE.call_once(|| ASYMMETRIC.store(sys::register_membarrier(), Ordering::Relaxed));
}

/// Fences the frequent side.
#[inline]
pub(crate) fn light_fence() {
    match is_asymmetric() {
        true => compiler_fence(Ordering::SeqCst),
        false => fence(Ordering::SeqCst),
    }
}

/// Returns true if the fence of the frequent side costs nothing. This never changes again.
#[inline]
fn is_asymmetric() -> bool {
    // Relaxed: see `prepare`. A thread that reads true may use membarrier: the registration came
    // before the store.
    ASYMMETRIC.load(Ordering::Relaxed)
}

/// Fences the rare side.
pub(crate) fn heavy_fence() {
    fence(Ordering::SeqCst);
    if is_asymmetric() {
        sys::membarrier();
    }
}
