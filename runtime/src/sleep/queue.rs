//! The wait queue: some state, and the waiters for it, behind one short lock.
//!
//! A primitive is a state `S`, a little data `T` of each waiter, and rules for which waiter is served when. The queue
//! does the rest for tasks, threads and futures alike: it blocks, wakes, times out, cancels and cleans up. A primitive
//! over it needs no unsafe code.
//!
//! ```text
//!                 admit: Done(r)
//!            ┌──────────────────────────────────────────────────▶ Outcome::Done(r)
//!            │                        serve_*                 wake
//!  wait ──▶ admit: Back ───────────▶ queued ──▶ served ──────────▶ Outcome::Served
//!                                     │           │
//!                                     │           └─ future dropped: leave(Left::Served)
//!                                     └─ deadline, cancel: leave(Left::Unserved) ──▶ Outcome::TimedOut, Cancelled
//! ```
//!
//! * **Serving** takes an entry out of its lane under the lock, and may write to its data. The wake follows once the
//!   lock is released. A waiter that was served returns [`Outcome::Served`](wait::Outcome::Served), whatever else came meanwhile.
//! * **Leaving** is decided under that lock. So a waiter is either served or left, never both.
//!   `leave` may serve waiters that the leaving waiter alone held up.
//! * **Entries** lie on the waiters' stacks, or in pinned futures. Served entries are chained through their own links
//!   until they are woken, so nothing is allocated and there is no limit to how many are served at once.
//! * **Order of wakes**: tasks and threads first, in the order in which they were served. The wakers of futures run
//!   last, since such a waker may drop another future, which waits until its own wake has landed.
//! * **Selects** wait in several queues at once, each by a [`QueueArm`](arm::QueueArm). The first waker takes the token of
//!   the select; the others pass over its arms.
//! * **Closures** run under a spin lock: keep them to a few instructions. They must not wait, wake, or drop values of
//!   users; they hand such values out. A panic in one of them ends the process where a waiter is half published.
//!
//! The queue may move while it has no waiter. The entry of a leaked future stays in the queue for
//! ever: it may be served in vain.
//!
//! ```
//! // A semaphore.
//! use fibra_runtime::wait::{Admit, Left, Outcome, Until, WaitQueue, Waiters};
//!
//! struct Semaphore(WaitQueue<usize, usize>);
//!
//! fn serve(free: &mut usize, waiters: &mut Waiters<'_, usize, 1>) {
//!     while let Some(wanted) = waiters.serve_front_if(0, |wanted| *wanted <= *free, |wanted| *wanted) {
//!         *free -= wanted;
//!     }
//! }
//!
//! impl Semaphore {
//!     fn acquire(&self, wanted: usize, until: Until) -> bool {
//!         let (outcome, _wanted) = self.0.wait(
//!             0,
//!             wanted,
//!             until,
//!             |free, wanted, waiters| match waiters.is_empty(0) && *wanted <= *free {
//!                 true => {
//!                     *free -= *wanted;
//!                     Admit::Done(())
//!                 }
//!                 false => Admit::Back,
//!             },
//!             || (),
//!             |free, wanted, waiters, left| {
//!                 if left == Left::Served {
//!                     *free += *wanted;
//!                 }
//!                 serve(free, waiters);
//!             },
//!         );
//!         matches!(outcome, Outcome::Done(()) | Outcome::Served)
//!     }
//!
//!     fn release(&self, count: usize) {
//!         self.0.with(|free, waiters| {
//!             *free += count;
//!             serve(free, waiters);
//!         });
//!     }
//! }
//!
//! let semaphore = Semaphore(WaitQueue::new(2));
//! assert!(semaphore.acquire(2, Until::unwind(None)));
//! std::thread::scope(|threads| {
//!     let waiter = threads.spawn(|| semaphore.acquire(1, Until::unwind(None)));
//!     semaphore.release(1);
//!     assert!(waiter.join().unwrap());
//! });
//! let over = std::time::Instant::now();
//! assert!(!semaphore.acquire(1, Until::unwind(Some(over))));
//! ```

pub(crate) mod arm;
pub(crate) mod future;
pub(crate) mod lane;
pub(crate) mod wait;
pub(crate) mod waiters;

use crate::base::primitive::AtomicU32;
use crate::base::spin_lock::{Lock, LockGuard};
use crate::sleep::queue::lane::{Lane, Served};
use crate::sleep::queue::waiters::Waiters;

/// State and the waiters for it, in one or more FIFO lanes, behind one spin lock.
///
/// The docs of the module `sleep/queue.rs` show the life of a waiter and a primitive over the queue.
pub struct WaitQueue<S, T, const LANES: usize = 1> {
    inner: Lock<Inner<S, T, LANES>, AtomicU32>,
}

/// What the lock protects.
struct Inner<S, T, const LANES: usize> {
    state: S,
    lanes: [Lane<T>; LANES],
}

impl<S, T, const LANES: usize> WaitQueue<S, T, LANES> {
    /// Makes a queue without waiters.
    pub const fn new(state: S) -> Self {
        WaitQueue {
            inner: Lock::beside(AtomicU32::new(0), Inner { state, lanes: [const { Lane::new() }; LANES] }),
        }
    }

    /// Returns a number beside the lock, for a primitive to use without it. The queue does not use it.
    #[inline]
    pub fn beside_lock(&self) -> &AtomicU32 {
        self.inner.beside_lock()
    }

    /// Returns true while the lock is held.
    pub fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }

    /// Returns the state, without locking: the caller is alone with the queue.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner.get_mut().state
    }

    /// Runs `f` under the lock. Waiters that `f` serves are woken after the lock is released.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&mut S, &mut Waiters<'_, T, LANES>) -> R) -> R {
        self.lock_or_first(|| ()).with(f)
    }

    /// Takes the lock, for a fast path that looks at the state alone. Calls `held` first if the lock is taken.
    #[inline(always)]
    pub fn lock_or_first(&self, held: impl FnOnce()) -> LockedQueue<'_, S, T, LANES> {
        LockedQueue { inner: self.inner.lock_or_first(held) }
    }
}

/// A wait queue while its lock is held: for a handful of instructions, as by [`WaitQueue::with`].
pub struct LockedQueue<'q, S, T, const LANES: usize> {
    inner: LockGuard<'q, Inner<S, T, LANES>, AtomicU32>,
}

impl<'q, S, T, const LANES: usize> LockedQueue<'q, S, T, LANES> {
    /// Returns the state.
    #[inline(always)]
    pub fn state(&mut self) -> &mut S {
        &mut self.inner.state
    }

    /// Returns true if no lane has an entry. An arm of a select that was served elsewhere may still have one.
    #[inline(always)]
    pub fn has_no_entries(&self) -> bool {
        self.inner.lanes.iter().all(Lane::is_bare)
    }

    /// Serves the longest waiter in `lane`. `Err`: there is none.
    #[inline(always)]
    pub fn serve_front(mut self, lane: usize) -> Result<ServingQueue<'q, S, T, LANES>, Self> {
        match self.inner.lanes[lane].serve_front_alone() {
            Some(served) => Ok(ServingQueue { inner: self.inner, served }),
            None => Err(self),
        }
    }

    /// Goes on to serve waiters.
    #[inline(always)]
    pub fn serving(self) -> ServingQueue<'q, S, T, LANES> {
        ServingQueue { inner: self.inner, served: Served::new() }
    }

    /// Runs `f` and releases the lock. Waiters that `f` serves are woken after that.
    #[inline]
    pub fn with<R>(self, f: impl FnOnce(&mut S, &mut Waiters<'_, T, LANES>) -> R) -> R {
        let mut queue = self.serving();
        let (state, mut waiters) = queue.parts();
        f(state, &mut waiters)
    }
}

/// A wait queue while its lock is held, and the waiters that were served under it.
///
/// Its drop releases the lock, and then wakes them. For code that would have to carry large data in and out of a closure.
pub struct ServingQueue<'q, S, T, const LANES: usize> {
    inner: LockGuard<'q, Inner<S, T, LANES>, AtomicU32>,
    /// Its drop wakes, so that it comes after the lock.
    served: Served<T>,
}

impl<S, T, const LANES: usize> ServingQueue<'_, S, T, LANES> {
    /// Returns the data of the waiter that was served first.
    #[inline(always)]
    pub fn first_served(&mut self) -> Option<&mut T> {
        self.served.first_data()
    }

    /// Returns the state and the waiters.
    #[inline(always)]
    pub fn parts(&mut self) -> (&mut S, Waiters<'_, T, LANES>) {
        let Inner { state, lanes } = &mut *self.inner;
        (state, Waiters::new(lanes, &mut self.served))
    }
}
