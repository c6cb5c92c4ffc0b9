//! Permits that borrow their semaphore: every way to take some.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use fibra_runtime::time;

use super::{AcquireError, Semaphore, SemaphorePermit, TryAcquireError};
use crate::wait;

impl Semaphore {
    /// Takes one permit, and waits for it if none is free or others wait.
    ///
    /// # Cancellation
    /// A cancellation point. A caller that unwinds holds no permit.
    ///
    /// # Panics
    /// Panics if the semaphore is [closed](Semaphore::close), also meanwhile.
    #[track_caller]
    pub fn acquire(&self) -> SemaphorePermit<'_> {
        self.acquire_many(1)
    }

    /// Takes `count` permits at once, and waits until as many are free.
    ///
    /// No later request is served before. For a `count` of zero it never waits.
    ///
    /// # Cancellation
    /// A cancellation point. A caller that unwinds holds no permit.
    ///
    /// # Panics
    /// Panics if the semaphore is [closed](Semaphore::close), also meanwhile.
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    #[track_caller]
    pub fn acquire_many(&self, count: usize) -> SemaphorePermit<'_> {
        match self.acquire_unless_closed(count) {
            Ok(permits) => permits,
            Err(closed) => closed.raise(),
        }
    }

    /// Takes `count` permits, unless the semaphore is closed.
    ///
    /// Otherwise it behaves as [`acquire_many`](Semaphore::acquire_many) does.
    ///
    /// # Cancellation
    /// A cancellation point. A caller that unwinds holds no permit.
    ///
    /// # Errors
    /// Fails if the semaphore is [closed](Semaphore::close), also meanwhile.
    ///
    /// # Panics
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    ///
    /// # Examples
    /// ```
    /// let semaphore = fibra_sync::Semaphore::new(2);
    /// assert_eq!(semaphore.acquire_unless_closed(2).map(|both| both.num_permits()), Ok(2));
    /// semaphore.close();
    /// assert!(semaphore.acquire_unless_closed(1).is_err());
    /// assert!(fibra_runtime::block_on(semaphore.acquire_unless_closed_async(1)).is_err());
    /// ```
    #[track_caller]
    pub fn acquire_unless_closed(&self, count: usize) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.enter(count, || None).map_err(|_| AcquireError::new())?;
        Ok(SemaphorePermit::new(self, count))
    }

    /// Takes one permit, but waits no longer than `timeout`.
    ///
    /// Returns `None` if it did not come in time, or if the semaphore is [closed](Semaphore::close).
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn acquire_timeout(&self, timeout: Duration) -> Option<SemaphorePermit<'_>> {
        self.acquire_many_timeout(1, timeout)
    }

    /// Takes `count` permits at once, but waits no longer than `timeout`.
    ///
    /// Returns `None` if they did not come in time, or if the semaphore is [closed](Semaphore::close).
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let semaphore = fibra_sync::Semaphore::new(2);
    /// let brief = Duration::from_millis(1);
    /// let both = semaphore.acquire_many(2);
    /// assert!(semaphore.acquire_timeout(brief).is_none());
    /// assert!(semaphore.acquire_many_timeout(2, brief).is_none());
    /// drop(both);
    /// let one = semaphore.acquire_deadline(Instant::now()).unwrap();
    /// assert!(semaphore.acquire_many_deadline(2, Instant::now()).is_none());
    /// assert_eq!(one.num_permits(), 1);
    /// ```
    #[track_caller]
    pub fn acquire_many_timeout(&self, count: usize, timeout: Duration) -> Option<SemaphorePermit<'_>> {
        self.enter(count, || time::deadline(timeout)).is_ok().then(|| SemaphorePermit::new(self, count))
    }

    /// Takes one permit, but does not wait beyond `deadline`.
    ///
    /// Returns `None` if it did not come in time, or if the semaphore is [closed](Semaphore::close).
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn acquire_deadline(&self, deadline: Instant) -> Option<SemaphorePermit<'_>> {
        self.acquire_many_deadline(1, deadline)
    }

    /// Takes `count` permits at once, but does not wait beyond `deadline`.
    ///
    /// Returns `None` if they did not come in time, or if the semaphore is [closed](Semaphore::close).
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    #[track_caller]
    pub fn acquire_many_deadline(&self, count: usize, deadline: Instant) -> Option<SemaphorePermit<'_>> {
        self.enter(count, || Some(deadline)).is_ok().then(|| SemaphorePermit::new(self, count))
    }

    /// Takes one permit if it need not wait for it.
    ///
    /// # Errors
    /// [`TryAcquireError::NoPermits`] if none is free, or others wait.
    /// [`TryAcquireError::Closed`] if the semaphore is [closed](Semaphore::close).
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `count` permits if it need not wait for them.
    ///
    /// # Errors
    /// [`TryAcquireError::NoPermits`] if there are not as many free ones, or others wait.
    /// [`TryAcquireError::Closed`] if the semaphore is [closed](Semaphore::close).
    ///
    /// # Panics
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    #[track_caller]
    pub fn try_acquire_many(&self, count: usize) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        wait::charge();
        self.take(count)?;
        Ok(SemaphorePermit::new(self, count))
    }

    /// Takes one permit, as a future, for `async` code.
    ///
    /// From its first poll on, or from the next one where the first one only yields, it waits in one queue with tasks and threads.
    ///
    /// # Cancellation
    /// Dropped before its end, the future leaves the queue. A permit that it was served meanwhile
    /// goes to the next waiter.
    ///
    /// # Panics
    /// Panics if the semaphore is [closed](Semaphore::close), also meanwhile.
    ///
    /// # Examples
    /// ```
    /// let semaphore = fibra_sync::Semaphore::new(3);
    /// let free = fibra_runtime::block_on(async {
    ///     let _one = semaphore.acquire_async().await;
    ///     let _two = semaphore.acquire_many_async(2).await;
    ///     semaphore.available_permits()
    /// });
    /// assert_eq!((free, semaphore.available_permits()), (0, 3));
    /// ```
    pub async fn acquire_async(&self) -> SemaphorePermit<'_> {
        self.acquire_many_async(1).await
    }

    /// Takes `count` permits at once, as a future, for `async` code.
    ///
    /// See [`acquire_async`](Semaphore::acquire_async) for its place in the queue and its
    /// cancellation.
    ///
    /// # Panics
    /// Panics if the semaphore is [closed](Semaphore::close), also meanwhile.
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    pub async fn acquire_many_async(&self, count: usize) -> SemaphorePermit<'_> {
        self.acquire_unless_closed_async(count).await.unwrap_or_else(AcquireError::raise)
    }

    /// Takes `count` permits, unless the semaphore is closed, as a future.
    ///
    /// See [`acquire_async`](Semaphore::acquire_async) for its place in the queue and its
    /// cancellation.
    ///
    /// # Errors
    /// Fails if the semaphore is [closed](Semaphore::close), also meanwhile.
    ///
    /// # Panics
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    pub async fn acquire_unless_closed_async(
        &self,
        count: usize,
    ) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.enter_async(count).await?;
        Ok(SemaphorePermit::new(self, count))
    }
}
