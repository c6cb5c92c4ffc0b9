//! Counts how many of its kind are alive.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One of them, counted in an `Arc` or by a borrow.
pub(crate) struct Counted<A: Deref<Target = AtomicUsize>>(A);

impl<A: Deref<Target = AtomicUsize>> Counted<A> {
    pub(crate) fn new(alive: A) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Counted(alive)
    }
}

impl<A: Deref<Target = AtomicUsize>> Drop for Counted<A> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
