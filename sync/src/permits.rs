//! A count of free permits and who waits for some: the state under [`Semaphore`](crate::Semaphore) and
//! [`AutoResetEvent`](crate::AutoResetEvent).
//!
//! ```text
//!  63                             2    1        0
//! ┌────────────────────────────────┬────────┬─────────┐
//! │ free permits                   │ LOCKED │ WAITERS │
//! └────────────────────────────────┴────────┴─────────┘
//!
//!                 take                                     enlist, under the lock
//!   free, nobody ──────▶ fewer free, nobody ────────────────────────────────────▶ free, WAITERS
//!        ▲  ▲                  │                                                     │  │  ▲
//!        │  └──────────────────┘ put                              put, serve: the ───┘  └──┘
//!        └──────────────────────────────────────────────────────  last one is served
//! ```
//!
//! * While WAITERS is clear the word is all there is, and every change is one compare-exchange.
//! * LOCKED, the list's lock, is only ever set together with WAITERS: who goes to sleep first takes the lock and says that
//!   it waits by one exchange, and where nobody waits there is nothing to lock. It is held for a handful of instructions.
//! * While WAITERS is set the word is only changed by who takes the lock or has it. So the one who has it gives it back by a
//!   plain store, and only what the longest waiter asks for leaves the word: nobody overtakes, and a waiter finds its permits
//!   taken for it when it wakes.
//! * WAITERS is set whenever the list is not empty. A sleeper that withdraws may leave the bit over an empty list, until
//!   it calls `serve`, which it does at once.
//!
//! The hand-over is that of Vélez's gate, where a signal with somebody waiting lets that one through and does not open; the count
//! beside it that keeps those off the lock who need not wait is Preshing's, in his lightweight semaphore and (0 or 1) in his
//! auto-reset event.
//!
//! Rejected: a count below zero for those who wait, as Preshing has it. It cannot tell how many permits each of them wants, and
//! a waiter whose time runs out has to correct it beside wakers who count on it. And a lock beside the word: to go to sleep and
//! to be served would be two locked instructions each instead of one.

use crate::primitive::{AtomicU64, Ordering, UnsafeCell, spin_loop, yield_now};
use crate::wait::list::{List, Node};
use crate::wait::{Claim, RawWake};

const WAITERS: u64 = 1;
const LOCKED: u64 = 1 << 1;
const ONE_PERMIT: u64 = 1 << 2;

/// Free permits, and a list of how many each waiter wants.
pub(crate) struct Permits {
    word: AtomicU64,
    /// Of who has set LOCKED.
    waiters: UnsafeCell<List<usize>>,
}

// SAFETY: the list is only reached by the one who has set LOCKED, as by a lock; so that the list is `Send` is what it takes.
unsafe impl Sync for Permits {}

/// The lock on the list, and what the word held when it was taken. Whoever has it gives it back by [`Locked::unlock`].
#[must_use]
struct Locked<'a> {
    permits: &'a Permits,
    free: usize,
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
        Permits { word: AtomicU64::new(free as u64 * ONE_PERMIT), waiters: UnsafeCell::new(List::new()) }
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
        loop {
            if let Some(locked) = self.lock() {
                let (before, free) = (locked.free, grown(locked.free));
                if free > Self::MAX {
                    locked.unlock(before);
                    return None;
                }
                return Some(locked.serve_front(free));
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
        match self.lock() {
            Some(locked) => {
                let free = locked.free;
                locked.serve_front(free)
            }
            None => Served::NOBODY,
        }
    }

    /// Takes away as many free permits as there are, up to `most`. How many.
    pub(crate) fn remove(&self, most: usize) -> usize {
        let fewer = |free: usize| free - free.min(most);
        loop {
            // Relaxed: nothing is published, and what others did for these permits is of no use to anybody.
            if let Changed::From(free) = self.change(fewer, Ordering::Relaxed) {
                return free - fewer(free);
            }
            if let Some(locked) = self.lock() {
                let free = locked.free;
                locked.unlock(fewer(free));
                return free - fewer(free);
            }
        }
    }

    /// Takes `wanted` permits, as the node says, and answers false; or queues the node behind all others.
    ///
    /// # Safety
    /// As for [`List::push_back`]; this lock is the list's.
    #[inline]
    pub(crate) unsafe fn enlist(&self, node: &Node<usize>, wake: RawWake) -> bool {
        // Relaxed: the exchange decides.
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            if seen & LOCKED != 0 {
                seen = self.await_unlocked();
                continue;
            }
            let rest = rest(seen, *node.data());
            let next = rest.unwrap_or(seen | WAITERS | LOCKED);
            // Acquire: pairs with the Release in `put`, for the case that permits are taken, and with that in `unlock`.
            match self.word.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) if rest.is_some() => return false,
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        let mut locked = Locked { permits: self, free: free_in(seen) };
        // SAFETY: the caller's contract.
        unsafe { locked.waiters().push_back(node, wake) };
        let free = locked.free;
        locked.unlock(free);
        true
    }

    /// Queues the node behind all others, as arm `arm` of its sleeper; or answers false if what the node says is
    /// free.
    ///
    /// # Safety
    /// As for [`List::push_back_for`]; this lock is the list's.
    pub(crate) unsafe fn enlist_for(
        &self,
        node: &Node<usize>,
        wake: RawWake,
        claim: &Claim,
        arm: usize,
    ) -> bool {
        // Relaxed: the exchange decides.
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            if seen & LOCKED != 0 {
                seen = self.await_unlocked();
                continue;
            }
            if rest(seen, *node.data()).is_some() {
                return false;
            }
            let next = seen | WAITERS | LOCKED;
            // Acquire: pairs with the Release in `unlock`.
            match self.word.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        let mut locked = Locked { permits: self, free: free_in(seen) };
        // SAFETY: the caller's contract.
        unsafe { locked.waiters().push_back_for(node, wake, claim, arm) };
        let free = locked.free;
        locked.unlock(free);
        true
    }

    /// Takes the node out of the queue; [`serve`](Permits::serve) is called soon after. False if it was served.
    ///
    /// # Safety
    /// The node is in this queue or in none.
    pub(crate) unsafe fn withdraw(&self, node: &Node<usize>) -> bool {
        // Without WAITERS the list is empty.
        let Some(mut locked) = self.lock() else { return false };
        // SAFETY: the caller's contract.
        let withdrawn = unsafe { locked.waiters().remove(node) };
        // WAITERS stays for `serve`, also over an empty list.
        locked.put_back();
        withdrawn
    }

    /// Takes the lock on the list, if somebody waits.
    #[inline]
    fn lock(&self) -> Option<Locked<'_>> {
        // Acquire, here and below, for the answer that nobody waits: pairs with the Release in `unlock`, as a lock does.
        let mut seen = self.word.load(Ordering::Acquire);
        while seen & WAITERS != 0 {
            if seen & LOCKED != 0 {
                seen = self.await_unlocked();
                continue;
            }
            // Acquire: pairs with the Release in `unlock`, and in changes before there were waiters.
            match self.word.compare_exchange_weak(seen, seen | LOCKED, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(Locked { permits: self, free: free_in(seen) }),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Waits for who has the lock. What the word is then.
    #[cold]
    #[inline(never)]
    fn await_unlocked(&self) -> u64 {
        let mut rounds = 0_u32;
        loop {
            rounds += 1;
            // The holder may have been preempted.
            if rounds.is_multiple_of(64) {
                yield_now()
            } else {
                spin_loop()
            }
            // Acquire: as in `lock`.
            let seen = self.word.load(Ordering::Acquire);
            if seen & LOCKED == 0 {
                return seen;
            }
        }
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
}

impl Locked<'_> {
    fn waiters(&mut self) -> &mut List<usize> {
        // SAFETY: LOCKED is set by the one who has this, so nobody else reaches the list.
        unsafe { &mut *self.permits.waiters.get() }
    }

    /// Serves the longest waiter out of `free` permits, and unlocks with what is left.
    #[inline]
    fn serve_front(mut self, free: usize) -> Served {
        let mut wanted = 0;
        let waiters = self.waiters();
        let first = waiters.pop_front_if(|&wants| {
            wanted = wants;
            wants <= free
        });
        let left = if first.is_some() { free - wanted } else { free };
        // Who wants none does not wait; so where none is left the next one's line need not be fetched.
        let more = first.is_some() && left > 0 && waiters.front().is_some_and(|&wants| wants <= left);
        self.unlock(left);
        Served { first, more }
    }

    /// Writes down how many permits are free, and unlocks.
    #[inline]
    fn unlock(mut self, free: usize) {
        let bit = if self.waiters().is_empty() { 0 } else { WAITERS };
        self.store(free, bit);
    }

    /// Unlocks, and leaves the word as it was.
    fn put_back(self) {
        self.store(self.free, WAITERS);
    }

    #[inline]
    fn store(&self, free: usize, bit: u64) {
        // Release: pairs with the Acquire in `take`, `lock` and `enlist`; the Acquire of this lock passes on what earlier
        // changes published. A plain store: while WAITERS is set only this holder changes the word.
        self.permits.word.store((free as u64 * ONE_PERMIT) | bit, Ordering::Release);
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
