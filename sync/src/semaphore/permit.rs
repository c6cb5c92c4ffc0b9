//! The guards of a semaphore: permits that are given back when they are dropped.

use std::fmt;
use std::mem;
use std::sync::Arc;

use super::Semaphore;

/// Permits of a semaphore, given back when this is dropped, by whoever has it then.
#[must_use = "dropped at once it gives the permits back at once"]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    count: usize,
}

/// Permits of a semaphore that they hold by a count, so that they may outlive the place where they were taken.
#[must_use = "dropped at once it gives the permits back at once"]
pub struct OwnedSemaphorePermit {
    semaphore: Arc<Semaphore>,
    count: usize,
}

impl<'a> SemaphorePermit<'a> {
    pub(crate) fn new(semaphore: &'a Semaphore, count: usize) -> Self {
        SemaphorePermit { semaphore, count }
    }

    /// How many permits these are.
    pub fn num_permits(&self) -> usize {
        self.count
    }

    /// Never gives the permits back: the semaphore has as many fewer from now on, until
    /// [`add_permits`](Semaphore::add_permits).
    pub fn forget(mut self) {
        self.count = 0;
    }

    /// Takes the permits of `other` over.
    ///
    /// # Panics
    /// If they are another semaphore's.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            std::ptr::eq(self.semaphore, other.semaphore),
            "permits of different semaphores cannot be merged"
        );
        self.count += mem::take(&mut other.count);
    }

    /// Makes `count` of these permits a guard of their own. `None` if these are fewer.
    pub fn split(&mut self, count: usize) -> Option<Self> {
        self.count = self.count.checked_sub(count)?;
        Some(SemaphorePermit { semaphore: self.semaphore, count })
    }

    /// The semaphore that these are permits of.
    pub fn semaphore(&self) -> &'a Semaphore {
        self.semaphore
    }
}

impl OwnedSemaphorePermit {
    pub(super) fn new(semaphore: Arc<Semaphore>, count: usize) -> Self {
        OwnedSemaphorePermit { semaphore, count }
    }

    /// How many permits these are.
    pub fn num_permits(&self) -> usize {
        self.count
    }

    /// Never gives the permits back, as [`SemaphorePermit::forget`].
    pub fn forget(mut self) {
        self.count = 0;
    }

    /// Takes the permits of `other` over.
    ///
    /// # Panics
    /// If they are another semaphore's.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            Arc::ptr_eq(&self.semaphore, &other.semaphore),
            "permits of different semaphores cannot be merged"
        );
        self.count += mem::take(&mut other.count);
    }

    /// Makes `count` of these permits a guard of their own. `None` if these are fewer.
    pub fn split(&mut self, count: usize) -> Option<Self> {
        self.count = self.count.checked_sub(count)?;
        Some(OwnedSemaphorePermit { semaphore: Arc::clone(&self.semaphore), count })
    }

    /// The semaphore that these are permits of.
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }
}

impl Drop for SemaphorePermit<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.count > 0 {
            self.semaphore.add_permits(self.count);
        }
    }
}

impl Drop for OwnedSemaphorePermit {
    fn drop(&mut self) {
        if self.count > 0 {
            self.semaphore.add_permits(self.count);
        }
    }
}

impl fmt::Debug for SemaphorePermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemaphorePermit").field("permits", &self.count).finish_non_exhaustive()
    }
}

impl fmt::Debug for OwnedSemaphorePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedSemaphorePermit").field("permits", &self.count).finish_non_exhaustive()
    }
}
