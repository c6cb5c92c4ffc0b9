//! The counting semaphore.
//!
//! ```text
//!  63                    2    1        0
//! ┌───────────────────────┬────────┬─────────┐
//! │ free permits          │ CLOSED │ WAITERS │
//! └───────────────────────┴────────┴─────────┘
//! ```
//!
//! * While WAITERS is clear, the word changes by one compare-exchange.
//! * WAITERS is set under the lock of the queue only. While it is set, only the holder of that lock changes the word. So no
//!   request overtakes a waiter, and what a waiter is served leaves the word under the lock.
//! * The holder of the lock clears WAITERS with the last waiter, unless CLOSED is set.
//! * CLOSED is set under the lock, beside WAITERS, and stays. The close serves all waiters with nothing.
//!
//! The hand-over is that of Vélez's gate. The count that keeps callers off the lock is that of Preshing's lightweight semaphore.

#![forbid(unsafe_code)]

mod borrowed;
mod error;
mod owned;
mod permits;

use std::time::Instant;

use crate::budget;
use crate::messages::shown;
use crate::primitive::{AtomicUsize, Ordering};
use crate::wait::{
    self, Admit, ArmPolicy, Left, Outcome, QueueArm, Until, WaitDescription, WaitQueue, Waiters,
};

pub use error::{AcquireError, TryAcquireError};
pub use permits::{OwnedSemaphorePermit, Permits, SemaphorePermit};

static SEMAPHORE: WaitDescription = WaitDescription::new("semaphore");

/// Limits how many tasks or threads do something at once.
///
/// Dropping a permit gives it back. A permit may be sent to another task or thread, kept over any
/// wait, or [forgotten](Permits::forget). To guard a value use a mutex: it knows its owner,
/// and detects recursive locking.
///
/// # Fairness
/// First come, first served, whatever the number of permits asked for. No request overtakes a
/// waiting one. A large request is served as soon as enough permits are free. Until then it holds
/// up the requests behind it, even those that the free permits would suffice for. Permits that are
/// given back go straight to the longest waiter. When a request times out or is cancelled, the
/// requests behind it that the free permits suffice for are served at once.
///
/// # Differences from tokio's
/// `acquire` blocks the task or the thread; [`acquire_async`](Semaphore::acquire_async) is for
/// futures. Both panic once the semaphore is closed; where it may be closed,
/// [`acquire_unless_closed`](Semaphore::acquire_unless_closed) returns a `Result`. Numbers of permits are `usize`.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use fibra_sync as sync;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let printers = Arc::new(sync::Semaphore::new(2));
/// let jobs: Vec<_> = (0..5)
///     .map(|page| {
///         let printers = Arc::clone(&printers);
///         fibra::spawn(move || {
///             let _printer = printers.acquire();
///             page * 10 // at most two are here at once
///         })
///     })
///     .collect();
/// assert_eq!(jobs.into_iter().map(|job| job.join().unwrap()).sum::<i32>(), 100);
/// assert_eq!(printers.available_permits(), 2);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The algorithm is that of Vélez's gate and Preshing's lightweight semaphore: permits are handed over to the longest waiter,
/// and without waiters the count changes without a lock.
///
/// A waiter and a permit borrow the semaphore, so it cannot be dropped before them:
/// ```compile_fail,E0597
/// # use fibra_sync as sync;
/// let permit = {
///     let semaphore = sync::Semaphore::new(1);
///     semaphore.acquire()
/// };
/// ```
pub struct Semaphore {
    word: AtomicUsize,
    /// How many permits each waiter wants; once it was served, how many it got: none of a closed semaphore.
    queue: WaitQueue<(), usize>,
}

const WAITERS: usize = 1;
const CLOSED: usize = 2;
const ONE_PERMIT: usize = 4;

impl Semaphore {
    /// Bounds the permits of a semaphore, and those of a request.
    ///
    /// It is 2⁶¹ − 1 where pointers have 64 bits.
    pub const MAX_PERMITS: usize = usize::MAX >> 3;

    /// Makes a semaphore with `permits` free permits.
    ///
    /// # Panics
    /// Panics if `permits` is over [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    #[track_caller]
    pub const fn new(permits: usize) -> Self {
        assert!(permits <= Self::MAX_PERMITS, "a semaphore has no more than Semaphore::MAX_PERMITS permits");
        Semaphore { word: AtomicUsize::new(permits * ONE_PERMIT), queue: WaitQueue::new(()) }
    }

    /// Lets all waiting and later requests fail.
    ///
    /// Those that cannot say so panic, such as [`acquire`](Semaphore::acquire).
    ///
    /// Permits that are held stay valid, and are counted when they are given back. A semaphore that
    /// is closed stays closed.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use fibra_sync::{Semaphore, TryAcquireError};
    /// use std::sync::Arc;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let jobs = Arc::new(Semaphore::new(0));
    /// let takes = Arc::clone(&jobs);
    /// let taker = fibra::spawn(move || takes.acquire_unless_closed(1).is_ok());
    /// fibra::yield_now();
    /// jobs.close();
    /// assert!(!taker.join().unwrap() && jobs.is_closed());
    /// assert_eq!(jobs.try_acquire().err(), Some(TryAcquireError::Closed));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn close(&self) {
        wait::point();
        self.queue.with(|(), waiters| {
            self.claim();
            // Release: pairs with the Acquire in `was_closed`. WAITERS is set, so no other party changes the word.
            self.word.fetch_or(CLOSED, Ordering::Release);
            while waiters.serve_front(0, |wanted| *wanted = 0).is_some() {}
        });
    }

    /// Returns true once the semaphore is closed.
    pub fn is_closed(&self) -> bool {
        wait::charge();
        self.was_closed()
    }

    fn was_closed(&self) -> bool {
        // Acquire: pairs with the Release in `close`: what was done before it is seen.
        self.word.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Returns how many permits are free. Waiting requests may need more.
    pub fn available_permits(&self) -> usize {
        wait::charge();
        self.free_permits()
    }

    fn free_permits(&self) -> usize {
        // Acquire: pairs with the Release of a change: what was done before a permit was given is seen.
        self.word.load(Ordering::Acquire) / ONE_PERMIT
    }

    /// Adds `count` permits, as though that many were given back.
    ///
    /// # Panics
    /// Panics if there would be more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS) free ones. None
    /// is added then.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::{Semaphore, TryAcquireError};
    /// let semaphore = Semaphore::new(1);
    /// semaphore.add_permits(2);
    /// assert_eq!(semaphore.forget_permits(9), 3);
    /// assert_eq!(semaphore.try_acquire().err(), Some(TryAcquireError::NoPermits));
    /// semaphore.add_permits(Semaphore::MAX_PERMITS);
    /// assert!(semaphore.try_acquire_many(2).is_ok());
    /// ```
    #[track_caller]
    pub fn add_permits(&self, count: usize) {
        let more = |free: usize| free.checked_add(count).filter(|sum| *sum <= Self::MAX_PERMITS);
        let is_added = self.change(more).is_some();
        if !is_added {
            over_the_maximum(count);
        }
    }

    /// Removes up to `count` free permits for good and returns how many.
    ///
    /// A permit that was served is not free, even if its future or its operation of a select is dropped
    /// later without its use: the permit is free from then on, and can be forgotten then.
    pub fn forget_permits(&self, count: usize) -> usize {
        let before = self.change(|free| Some(free - free.min(count)));
        before.map_or(0, |free| free.min(count))
    }

    /// Takes `count` permits, unless the deadline comes before they do.
    #[track_caller]
    #[inline]
    fn enter(&self, count: usize, deadline: impl FnOnce() -> Option<Instant>) -> Result<(), TryAcquireError> {
        wait::checkpoint();
        match self.take(count) {
            // Only a request that waits reads the clock.
            Err(TryAcquireError::NoPermits) => {
                self.enter_slow(count, Until::unwind(deadline()).spinning().described(&SEMAPHORE))
            }
            taken => taken,
        }
    }

    #[inline(never)]
    fn enter_slow(&self, count: usize, until: Until) -> Result<(), TryAcquireError> {
        let (outcome, given) = self.queue.wait(
            0,
            count,
            until,
            |(), wanted, waiters| self.arrive(*wanted, waiters),
            || (),
            |(), wanted, waiters, left| self.leave(*wanted, waiters, left),
        );
        Self::taken(outcome, given)
    }

    async fn enter_async(&self, count: usize) -> Result<(), AcquireError> {
        budget::charge().await;
        let taken = match self.take(count) {
            Err(TryAcquireError::NoPermits) => {
                let (outcome, given) = self
                    .queue
                    .wait_async(
                        0,
                        count,
                        |(), wanted, waiters| self.arrive(*wanted, waiters),
                        |(), wanted, waiters, left| self.leave(*wanted, waiters, left),
                    )
                    .await;
                Self::taken(outcome, given)
            }
            taken => taken,
        };
        taken.map_err(|_| AcquireError::new())
    }

    /// Says how a wait has ended that was `given` so many permits.
    fn taken(outcome: Outcome<Result<(), TryAcquireError>>, given: usize) -> Result<(), TryAcquireError> {
        match outcome {
            Outcome::Done(taken) => taken,
            Outcome::Served if given == 0 => Err(TryAcquireError::Closed),
            Outcome::Served => Ok(()),
            Outcome::TimedOut | Outcome::Cancelled => Err(TryAcquireError::NoPermits),
        }
    }

    #[track_caller]
    #[inline]
    pub(crate) fn take(&self, count: usize) -> Result<(), TryAcquireError> {
        if count > Self::MAX_PERMITS {
            too_many_asked_for(count);
        }
        // Acquire: as in `free_permits`.
        match self.try_change(|free| free.checked_sub(count), Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(_) => self.refuse(count),
        }
    }

    /// Says why a request fails that would have to wait. One for no permit need not wait.
    #[cold]
    fn refuse(&self, count: usize) -> Result<(), TryAcquireError> {
        match self.was_closed() {
            true => Err(TryAcquireError::Closed),
            false if count == 0 => Ok(()),
            false => Err(TryAcquireError::NoPermits),
        }
    }

    /// Changes the number of free permits as `how` says, and serves. Returns the number before, or `None` if `how` refuses it.
    #[inline]
    fn change(&self, how: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        wait::point();
        // Release: as in `free_permits`.
        match self.try_change(&how, Ordering::Release) {
            Ok(free) => Some(free),
            Err(word) if word & WAITERS == 0 => None,
            Err(_) => self.change_slow(how),
        }
    }

    #[inline(never)]
    fn change_slow(&self, how: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        self.queue.with(|(), waiters| {
            let free = self.claim();
            let changed = how(free);
            self.serve(changed.unwrap_or(free), waiters);
            changed.and(Some(free))
        })
    }

    /// Changes the number of free permits if no request waits. Returns the number before, or else the word.
    #[inline]
    fn try_change(&self, how: impl Fn(usize) -> Option<usize>, order: Ordering) -> Result<usize, usize> {
        // Relaxed: the exchange decides.
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let free = seen / ONE_PERMIT;
            let (0, Some(changed)) = (seen & WAITERS, how(free)) else { return Err(seen) };
            match self.word.compare_exchange_weak(seen, changed * ONE_PERMIT, order, Ordering::Relaxed) {
                Ok(_) => return Ok(free),
                Err(now) => seen = now,
            }
        }
    }

    /// Sets WAITERS, under the lock of the queue: from here on only its holder changes the word. Returns the free permits.
    fn claim(&self) -> usize {
        // Acquire, both: as in `free_permits`.
        let word = match self.word.load(Ordering::Acquire) {
            word if word & WAITERS != 0 => word,
            _ => self.word.fetch_or(WAITERS, Ordering::Acquire),
        };
        word / ONE_PERMIT
    }

    /// Leaves `free` permits in the claimed word, and clears WAITERS if no request waits and none is to fail.
    fn settle(&self, free: usize, waiters: &Waiters<'_, usize, 1>) {
        let flags = match self.was_closed() {
            true => WAITERS | CLOSED,
            false if waiters.is_empty(0) => 0,
            false => WAITERS,
        };
        // Release: as in `free_permits`. The Acquire of `claim` passes on what earlier changes published.
        self.word.store((free * ONE_PERMIT) | flags, Ordering::Release);
    }

    /// Serves the longest waiters as long as there is enough for them, and settles the claimed word.
    fn serve(&self, mut free: usize, waiters: &mut Waiters<'_, usize, 1>) {
        // A request that waits wants a permit at least.
        while free > 0
            && let Some(taken) = waiters.serve_front_if(0, |wanted| *wanted <= free, |wanted| *wanted)
        {
            free -= taken;
        }
        self.settle(free, waiters);
    }

    /// Takes the permits that are `wanted`, or leaves the word claimed for a request that is queued next.
    fn arrive(&self, wanted: usize, waiters: &Waiters<'_, usize, 1>) -> Admit<Result<(), TryAcquireError>> {
        match self.claim().checked_sub(wanted) {
            _ if self.was_closed() => Admit::Done(Err(TryAcquireError::Closed)),
            Some(rest) if waiters.is_empty(0) => {
                self.settle(rest, waiters);
                Admit::Done(Ok(()))
            }
            _ => Admit::Back,
        }
    }

    /// Gives back what a dropped future was served. A request that leaves unserved may have kept others waiting.
    fn leave(&self, wanted: usize, waiters: &mut Waiters<'_, usize, 1>, left: Left) {
        let given_back = if left == Left::Served { wanted } else { 0 };
        self.serve(self.claim() + given_back, waiters);
    }

    /// Makes an arm of a select.
    pub(crate) fn queue_arm(&self) -> QueueArm<'_, (), usize, 1, Self> {
        QueueArm::new(&self.queue, 0, 1, self).described(&SEMAPHORE)
    }
}

impl ArmPolicy<(), usize, 1> for Semaphore {
    fn is_ready(&self, (): &(), wanted: &mut usize, waiters: &Waiters<'_, usize, 1>) -> bool {
        let free = self.claim();
        let is_ready = self.was_closed() || (*wanted <= free && waiters.is_empty(0));
        if is_ready {
            self.settle(free, waiters);
        }
        is_ready
    }

    fn left(&self, (): &mut (), _wanted: &mut usize, waiters: &mut Waiters<'_, usize, 1>) {
        self.serve(self.claim(), waiters);
    }
}

shown!(Semaphore: it => permits: it.free_permits());

#[cold]
#[track_caller]
fn over_the_maximum(count: usize) -> ! {
    panic!(
        "{count} more permits are over the maximum of a semaphore, {}: give back only what was acquired",
        Semaphore::MAX_PERMITS
    )
}

#[cold]
#[track_caller]
fn too_many_asked_for(count: usize) -> ! {
    panic!(
        "a request for {count} permits would wait for ever: no semaphore has more than {}",
        Semaphore::MAX_PERMITS
    )
}
