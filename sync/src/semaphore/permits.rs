//! The guard of permits, which gives them back.

#![forbid(unsafe_code)]

use std::fmt;
use std::mem;
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

use super::Semaphore;

/// Holds permits of a semaphore, and gives them back when it is dropped.
///
/// # Examples
/// ```
/// let semaphore = fibra_sync::Semaphore::new(3);
/// let mut permits = semaphore.acquire_many(3);
/// let one = permits.split(1).unwrap();
/// assert_eq!((permits.num_permits(), one.num_permits()), (2, 1));
/// assert!(permits.split(3).is_none());
/// permits.merge(one);
/// assert!(std::ptr::eq(permits.semaphore(), &semaphore));
/// drop(permits);
/// semaphore.acquire().forget();
/// assert_eq!(semaphore.available_permits(), 2);
/// ```
#[must_use = "dropped at once it gives the permits back at once"]
pub struct Permits<S: Deref<Target = Semaphore>> {
    semaphore: S,
    count: usize,
}

/// Permits that borrow their semaphore.
pub type SemaphorePermit<'a> = Permits<&'a Semaphore>;

/// Permits that own a count of their semaphore, and may outlive its borrow.
pub type OwnedSemaphorePermit = Permits<Arc<Semaphore>>;

impl<S: Deref<Target = Semaphore>> Permits<S> {
    pub(crate) fn new(semaphore: S, count: usize) -> Self {
        Permits { semaphore, count }
    }

    /// Returns how many permits these are.
    pub fn num_permits(&self) -> usize {
        self.count
    }

    /// Drops the guard without giving its permits back.
    ///
    /// The semaphore has as many fewer from now on, until [`add_permits`](Semaphore::add_permits).
    pub fn forget(mut self) {
        self.count = 0;
    }

    /// Takes the permits of `other` over.
    ///
    /// # Panics
    /// Panics if they are another semaphore's.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            ptr::eq::<Semaphore>(&*self.semaphore, &*other.semaphore),
            "permits of different semaphores cannot be merged"
        );
        self.count += mem::take(&mut other.count);
    }

    /// Splits off `count` permits as a guard; returns `None` if there are fewer.
    pub fn split(&mut self, count: usize) -> Option<Self>
    where
        S: Clone,
    {
        self.count = self.count.checked_sub(count)?;
        Some(Permits { semaphore: self.semaphore.clone(), count })
    }
}

impl<'a> SemaphorePermit<'a> {
    /// Returns the semaphore that these are permits of.
    pub fn semaphore(&self) -> &'a Semaphore {
        self.semaphore
    }
}

impl OwnedSemaphorePermit {
    /// Returns the semaphore that these are permits of.
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Permits<S> {
    #[inline]
    fn drop(&mut self) {
        if self.count > 0 {
            self.semaphore.add_permits(self.count);
        }
    }
}

impl<S: Deref<Target = Semaphore>> fmt::Debug for Permits<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemaphorePermit").field("permits", &self.count).finish_non_exhaustive()
    }
}
