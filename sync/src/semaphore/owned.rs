//! Permits that hold their semaphore by a count, not by a borrow: every way to take some.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fibra_runtime::time;

use super::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};
use crate::wait;

impl Semaphore {
    /// Takes one permit that owns a count of the semaphore.
    ///
    /// Otherwise it behaves as [`acquire`](Semaphore::acquire) does.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// As [`acquire`](Semaphore::acquire) does.
    #[track_caller]
    pub fn acquire_owned(self: Arc<Self>) -> OwnedSemaphorePermit {
        self.acquire_many_owned(1)
    }

    /// Takes `count` owned permits, as [`acquire_many`](Semaphore::acquire_many) does.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// As [`acquire_many`](Semaphore::acquire_many) does.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use std::time::{Duration, Instant};
    /// let semaphore = Arc::new(fibra_sync::Semaphore::new(2));
    /// let share = || Arc::clone(&semaphore);
    /// let both = share().acquire_many_owned(2);
    /// assert!(share().try_acquire_owned().is_err() && share().try_acquire_many_owned(2).is_err());
    /// assert!(share().acquire_many_owned_timeout(2, Duration::from_millis(1)).is_none());
    /// assert!(share().acquire_owned_deadline(Instant::now()).is_none());
    /// assert!(share().acquire_many_owned_deadline(2, Instant::now()).is_none());
    /// drop(both);
    /// let one = fibra_runtime::block_on(share().acquire_owned_async());
    /// let other = fibra_runtime::block_on(share().acquire_many_owned_async(1));
    /// assert_eq!((one.num_permits(), other.num_permits()), (1, 1));
    /// ```
    #[track_caller]
    pub fn acquire_many_owned(self: Arc<Self>, count: usize) -> OwnedSemaphorePermit {
        match self.acquire_owned_unless_closed(count) {
            Ok(permits) => permits,
            Err(closed) => closed.raise(),
        }
    }

    /// Takes `count` owned permits, as [`acquire_unless_closed`](Semaphore::acquire_unless_closed) does.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Errors
    /// As for [`acquire_unless_closed`](Semaphore::acquire_unless_closed).
    ///
    /// # Panics
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// let semaphore = Arc::new(fibra_sync::Semaphore::new(1));
    /// let share = || Arc::clone(&semaphore);
    /// assert!(share().acquire_owned_unless_closed(1).is_ok());
    /// semaphore.close();
    /// assert!(share().acquire_owned_unless_closed(1).is_err());
    /// assert!(fibra_runtime::block_on(share().acquire_owned_unless_closed_async(1)).is_err());
    /// ```
    #[track_caller]
    pub fn acquire_owned_unless_closed(
        self: Arc<Self>,
        count: usize,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.enter(count, || None).map_err(|_| AcquireError::new())?;
        Ok(OwnedSemaphorePermit::new(self, count))
    }

    /// Takes an owned permit, as [`acquire_timeout`](Semaphore::acquire_timeout) does.
    ///
    /// Returns `None` if it did not come in time, or if the semaphore is [closed](Semaphore::close).
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use fibra_sync as sync;
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let printer = Arc::new(sync::Semaphore::new(1));
    /// let permit = Arc::clone(&printer).acquire_owned();
    /// assert!(Arc::clone(&printer).acquire_owned_timeout(Duration::from_millis(1)).is_none());
    /// fibra::spawn(move || drop(permit)); // it may go to another task
    /// assert!(printer.acquire_owned_timeout(Duration::from_secs(60)).is_some());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn acquire_owned_timeout(self: Arc<Self>, timeout: Duration) -> Option<OwnedSemaphorePermit> {
        self.acquire_many_owned_timeout(1, timeout)
    }

    /// Takes `count` owned permits, and waits at most `timeout`.
    ///
    /// It behaves as [`acquire_many_timeout`](Semaphore::acquire_many_timeout) does.
    ///
    /// Returns `None` if they did not come in time, or if the semaphore is [closed](Semaphore::close).
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    #[track_caller]
    pub fn acquire_many_owned_timeout(
        self: Arc<Self>,
        count: usize,
        timeout: Duration,
    ) -> Option<OwnedSemaphorePermit> {
        self.enter(count, || time::deadline(timeout)).is_ok().then(|| OwnedSemaphorePermit::new(self, count))
    }

    /// Takes an owned permit, as [`acquire_deadline`](Semaphore::acquire_deadline) does.
    ///
    /// Returns `None` if it did not come in time, or if the semaphore is [closed](Semaphore::close).
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn acquire_owned_deadline(self: Arc<Self>, deadline: Instant) -> Option<OwnedSemaphorePermit> {
        self.acquire_many_owned_deadline(1, deadline)
    }

    /// Takes `count` owned permits, and waits at most until `deadline`.
    ///
    /// It behaves as [`acquire_many_deadline`](Semaphore::acquire_many_deadline) does.
    ///
    /// Returns `None` if they did not come in time, or if the semaphore is [closed](Semaphore::close).
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    #[track_caller]
    pub fn acquire_many_owned_deadline(
        self: Arc<Self>,
        count: usize,
        deadline: Instant,
    ) -> Option<OwnedSemaphorePermit> {
        self.enter(count, || Some(deadline)).is_ok().then(|| OwnedSemaphorePermit::new(self, count))
    }

    /// Takes an owned permit without waiting, as [`try_acquire`](Semaphore::try_acquire) does.
    ///
    /// # Errors
    /// As for [`try_acquire`](Semaphore::try_acquire).
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// Takes `count` owned permits without waiting.
    ///
    /// It behaves as [`try_acquire_many`](Semaphore::try_acquire_many) does.
    ///
    /// # Errors
    /// As for [`try_acquire_many`](Semaphore::try_acquire_many).
    ///
    /// # Panics
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    #[track_caller]
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        count: usize,
    ) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        wait::charge();
        self.take(count)?;
        Ok(OwnedSemaphorePermit::new(self, count))
    }

    /// Takes an owned permit, as [`acquire_async`](Semaphore::acquire_async) does.
    ///
    /// # Cancellation
    /// As for [`acquire_async`](Semaphore::acquire_async).
    ///
    /// # Panics
    /// As [`acquire`](Semaphore::acquire) does.
    pub async fn acquire_owned_async(self: Arc<Self>) -> OwnedSemaphorePermit {
        self.acquire_many_owned_async(1).await
    }

    /// Takes `count` owned permits as a future.
    ///
    /// It behaves as [`acquire_many_async`](Semaphore::acquire_many_async) does.
    ///
    /// # Cancellation
    /// As for [`acquire_async`](Semaphore::acquire_async).
    ///
    /// # Panics
    /// As [`acquire_many`](Semaphore::acquire_many) does.
    pub async fn acquire_many_owned_async(self: Arc<Self>, count: usize) -> OwnedSemaphorePermit {
        self.acquire_owned_unless_closed_async(count).await.unwrap_or_else(AcquireError::raise)
    }

    /// Takes `count` owned permits, unless the semaphore is closed, as a future.
    ///
    /// # Cancellation
    /// As for [`acquire_async`](Semaphore::acquire_async).
    ///
    /// # Errors
    /// As for [`acquire_unless_closed`](Semaphore::acquire_unless_closed).
    ///
    /// # Panics
    /// Panics if `count` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    pub async fn acquire_owned_unless_closed_async(
        self: Arc<Self>,
        count: usize,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.enter_async(count).await?;
        Ok(OwnedSemaphorePermit::new(self, count))
    }
}
