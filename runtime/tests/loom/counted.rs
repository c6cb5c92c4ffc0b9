//! Shares that are counted, over loom's.
//!
//! Those that are left over when a model has failed are dropped where loom is there no more. So they do nothing then.

use std::mem::ManuallyDrop;
use std::ops::Deref;

use loom::sync::Arc as Counted;

pub(crate) struct Arc<T>(ManuallyDrop<Counted<T>>);

impl<T> Arc<T> {
    pub(crate) fn new(value: T) -> Self {
        Arc(ManuallyDrop::new(Counted::new(value)))
    }

    pub(crate) fn as_ptr(this: &Self) -> *const T {
        Counted::as_ptr(&this.0)
    }

    pub(crate) fn ptr_eq(this: &Self, other: &Self) -> bool {
        Counted::ptr_eq(&this.0, &other.0)
    }

    pub(crate) fn get_mut(this: &mut Self) -> Option<&mut T> {
        Counted::get_mut(&mut this.0)
    }

    /// # Safety
    /// As of std's.
    pub(crate) unsafe fn from_raw(value: *const T) -> Self {
        // SAFETY: the caller's contract.
        Arc(ManuallyDrop::new(unsafe { Counted::from_raw(value) }))
    }

    /// # Safety
    /// As of std's.
    pub(crate) unsafe fn increment_strong_count(value: *const T) {
        // SAFETY: the caller's contract.
        unsafe { Counted::increment_strong_count(value) };
    }

    /// # Safety
    /// As of std's.
    pub(crate) unsafe fn decrement_strong_count(value: *const T) {
        // SAFETY: the caller's contract.
        unsafe { Counted::decrement_strong_count(value) };
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        Arc(self.0.clone())
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}
