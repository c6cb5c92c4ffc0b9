//! A count of free permits and who waits for some: the state under [`Semaphore`](crate::Semaphore) and
//! [`AutoResetEvent`](crate::AutoResetEvent).
//!
//! ```text
//!  63                                    1    0
//! ┌───────────────────────────────────────┬─────────┐
//! │ free permits                          │ WAITERS │
//! └───────────────────────────────────────┴─────────┘
//!
//!                 take                                     enlist, under the lock
//!   free, nobody ──────▶ fewer free, nobody ────────────────────────────────────▶ free, WAITERS
//!        ▲  ▲                  │                                                     │  │  ▲
//!        │  └──────────────────┘ put                              put, serve: the ───┘  └──┘
//!        └──────────────────────────────────────────────────────  last one is served
//! ```
//!
//! * While WAITERS is clear the word is all there is, and every change is one compare-exchange.
//! * While WAITERS is set the word is only changed under the lock, so that plain loads and stores do there, and only what
//!   the longest waiter asks for leaves it: nobody overtakes, and a waiter finds its permits taken for it when it wakes.
//! * WAITERS is set whenever the list is not empty. A sleeper that withdraws may leave the bit over an empty list, until
//!   it calls `serve`, which it does at once.
//!
//! The hand-over is that of Vélez's gate, where a signal with somebody waiting lets that one through and does not open; the count
//! beside it that keeps those off the lock who need not wait is Preshing's, in his lightweight semaphore and (0 or 1) in his
//! auto-reset event.
//!
//! Rejected: a count below zero for those who wait, as Preshing has it. It cannot tell how many permits each of them wants, and
//! a waiter whose time runs out has to correct it beside wakers who count on it.

use crate::primitive::{AtomicU64, Ordering};
use crate::wait::list::{List, Node};
use crate::wait::{Lock, RawWake};

const WAITERS: u64 = 1;
const ONE_PERMIT: u64 = 2;

/// Free permits, and a list of how many each waiter wants.
pub(crate) struct Permits {
    word: AtomicU64,
    waiters: Lock<List<usize>>,
}

/// Whom a change has served: the caller wakes them, once it holds no lock.
#[must_use]
pub(crate) struct Served {
    /// The longest waiter, if it got what it wants.
    pub(crate) first: Option<RawWake>,
    /// The next one can be served too: call [`Permits::serve`].
    pub(crate) more: bool,
}

/// What became of a change that only those make whom nobody waits for.
enum Changed {
    /// It is made; so many permits were free before.
    From(usize),
    OverMax,
    Waiters,
}

impl Served {
    const NOBODY: Served = Served { first: None, more: false };
}

impl Permits {
    /// The most there can be: the word has room for twice as many.
    pub(crate) const MAX: usize = usize::MAX >> 3;

    pub(crate) const fn new(free: usize) -> Self {
        Permits { word: AtomicU64::new(free as u64 * ONE_PERMIT), waiters: Lock::new(List::new()) }
    }

    /// How many are free now. Those that wait may want more.
    pub(crate) fn free(&self) -> usize {
        // Acquire: pairs with the Release in `put`: who sees a permit also sees what was done before it was given.
        free_in(self.word.load(Ordering::Acquire))
    }

    /// Takes `wanted` free permits, if there are as many and nobody waits.
    #[inline]
    pub(crate) fn take(&self, wanted: usize) -> bool {
        // Relaxed: the exchange decides.
        let mut seen = self.word.load(Ordering::Relaxed);
        while let Some(rest) = rest(seen, wanted) {
            // Acquire: pairs with the Release in `put`. Exchanges go on with the release sequence of those before.
            match self.word.compare_exchange_weak(seen, rest, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// True if nobody waits.
    pub(crate) fn is_quiet(&self) -> bool {
        // Relaxed: a hint.
        self.word.load(Ordering::Relaxed) & WAITERS == 0
    }

    /// Makes the free permits as many as `grown` says, and serves the longest waiter if that is enough for it. `None` if it
    /// says more than [`MAX`](Permits::MAX): nothing is changed then.
    #[inline]
    pub(crate) fn put(&self, grown: impl Fn(usize) -> usize) -> Option<Served> {
        // Release: pairs with the Acquire in `take`.
        match self.change(&grown, Ordering::Release) {
            Changed::From(_) => Some(Served::NOBODY),
            Changed::OverMax => None,
            Changed::Waiters => self.put_slow(grown),
        }
    }

    #[inline(never)]
    fn put_slow(&self, grown: impl Fn(usize) -> usize) -> Option<Served> {
        let mut waiters = self.waiters.lock();
        loop {
            // Acquire: pairs with the Release of earlier changes, whose store this one replaces.
            let seen = self.word.load(Ordering::Acquire);
            if seen & WAITERS != 0 {
                let free = grown(free_in(seen));
                return (free <= Self::MAX).then(|| self.serve_front(&mut waiters, free));
            }
            // They were served, or left, before the lock was taken.
            match self.change(&grown, Ordering::Release) {
                Changed::From(_) => return Some(Served::NOBODY),
                Changed::OverMax => return None,
                Changed::Waiters => {}
            }
        }
    }

    /// Serves the longest waiter, if what is free is enough for it.
    pub(crate) fn serve(&self) -> Served {
        let mut waiters = self.waiters.lock();
        // Acquire: as in `put_slow`.
        let seen = self.word.load(Ordering::Acquire);
        match seen & WAITERS {
            0 => Served::NOBODY,
            _ => self.serve_front(&mut waiters, free_in(seen)),
        }
    }

    /// Takes away as many free permits as there are, up to `most`. How many.
    pub(crate) fn remove(&self, most: usize) -> usize {
        let fewer = |free: usize| free - free.min(most);
        // Relaxed: nothing is published, and what others did for these permits is of no use to anybody.
        if let Changed::From(free) = self.change(fewer, Ordering::Relaxed) {
            return free - fewer(free);
        }
        let mut waiters = self.waiters.lock();
        loop {
            // Acquire: as in `put_slow`.
            let seen = self.word.load(Ordering::Acquire);
            if seen & WAITERS != 0 {
                let free = free_in(seen);
                self.settle(&mut waiters, fewer(free));
                return free - fewer(free);
            }
            if let Changed::From(free) = self.change(fewer, Ordering::Relaxed) {
                return free - fewer(free);
            }
        }
    }

    /// Takes `wanted` permits, as the node says, and answers false; or queues the node behind all others.
    ///
    /// # Safety
    /// As for [`List::push_back`]; this lock is the list's.
    pub(crate) unsafe fn enlist(&self, node: &Node<usize>, wake: RawWake) -> bool {
        let mut waiters = self.waiters.lock();
        // Relaxed: the exchange decides, or the bit, which is only cleared under this lock.
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & WAITERS == 0 {
            let rest = rest(seen, *node.data());
            let next = rest.unwrap_or(seen | WAITERS);
            // Acquire: pairs with the Release in `put`, for the case that permits are taken.
            match self.word.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) if rest.is_some() => return false,
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        // SAFETY: the caller's contract.
        unsafe { waiters.push_back(node, wake) };
        true
    }

    /// Takes the node out of the queue; [`serve`](Permits::serve) is called soon after. False if it was served.
    ///
    /// # Safety
    /// The node is in this queue or in none.
    pub(crate) unsafe fn withdraw(&self, node: &Node<usize>) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.waiters.lock().remove(node) }
    }

    /// Changes the number of free permits, if nobody waits.
    #[inline]
    fn change(&self, how: impl Fn(usize) -> usize, order: Ordering) -> Changed {
        // Relaxed: the exchange decides.
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & WAITERS == 0 {
            let next = how(free_in(seen));
            if next > Self::MAX {
                return Changed::OverMax;
            }
            match self.word.compare_exchange_weak(seen, next as u64 * ONE_PERMIT, order, Ordering::Relaxed) {
                Ok(_) => return Changed::From(free_in(seen)),
                Err(now) => seen = now,
            }
        }
        Changed::Waiters
    }

    /// Under the lock and with WAITERS set: serves the longest waiter out of `free` permits, and writes down what is left.
    fn serve_front(&self, waiters: &mut List<usize>, free: usize) -> Served {
        let mut wanted = 0;
        let first = waiters.pop_front_if(|&wants| {
            wanted = wants;
            wants <= free
        });
        let left = if first.is_some() { free - wanted } else { free };
        self.settle(waiters, left);
        let more = first.is_some() && waiters.front().is_some_and(|&wants| wants <= left);
        Served { first, more }
    }

    fn settle(&self, waiters: &mut List<usize>, free: usize) {
        let bit = if waiters.is_empty() { 0 } else { WAITERS };
        // Release: pairs with the Acquire in `take`; the callers' Acquire passes on what earlier changes published.
        self.word.store((free as u64 * ONE_PERMIT) | bit, Ordering::Release);
    }
}

fn free_in(word: u64) -> usize {
    (word / ONE_PERMIT) as usize
}

/// The word without `wanted` permits, if nobody waits and there are as many.
fn rest(word: u64, wanted: usize) -> Option<u64> {
    match word & WAITERS {
        0 => word.checked_sub(wanted as u64 * ONE_PERMIT),
        _ => None,
    }
}
