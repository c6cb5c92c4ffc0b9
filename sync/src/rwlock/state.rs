//! The word of a read-write lock, its waiters, and the rules for which one goes next.
//!
//! ```text
//!  63 62                5   4       3        2         1          0
//! ┌──┬─────────────────┬───────┬─────────┬────────┬────────────┬─────────┐
//! │ F│ readers         │ WOKEN │ AWAITED │ CLOSED │ UPGRADABLE │ WRITTEN │
//! └──┴─────────────────┴───────┴─────────┴────────┴────────────┴─────────┘
//!  WRITTEN     a writer holds the lock, alone
//!  UPGRADABLE  an upgradable reader holds it, beside the readers
//!  CLOSED      a writer or an upgrade waits: arrivals wait behind it
//!  AWAITED     the queue is not empty
//!  WOKEN       a woken waiter is on its way to compete: unlocks may pass over the queue
//!  F           the next reader is refused: the count is full
//!
//!                    a writer waits                    the last reader leaves
//!   ┌──────────────┐                 ┌────────────────┐                      ┌─────────┐
//!   │ readers      │ ───────────────▶│ readers,       │ ────────────────────▶│ WRITTEN │
//!   │              │ ◀───────────────│ CLOSED         │                      └─────────┘
//!   └──────────────┘  it times out   └────────────────┘                        │     │
//!           ▲                                ▲   the waiting readers           │     │ the next writer
//!           └────────────────────────────────┴─────────────────────────────────┘     ▼
//!            (CLOSED if another writer waits)                                     WRITTEN
//! ```
//!
//! | move | by | how |
//! | --- | --- | --- |
//! | lock without a wait | an arrival | compare-exchange; only WRITTEN keeps a recursive reader out |
//! | unlock, a reader | the reader | subtraction; the last one of an AWAITED lock settles |
//! | unlock, any other hold | the holder | compare-exchange; under the lock of the queue if AWAITED |
//! | unlock past the queue | the holder | compare-exchange, while WOKEN and not CLOSED |
//! | set CLOSED, AWAITED | an arrival that queues | under the lock of the queue, while the word keeps it out |
//! | grant, set WOKEN, clear flags | a caller that settles | under the lock of the queue, before the wakes |
//! | clear WOKEN | a woken waiter that comes | under the lock of the queue |
//!
//! * **Settling** compares the word with the queue. The [plan](State::plan) says which waiters may go in. They do in one of
//!   two ways:
//!   * The lock is *handed over*: the word is theirs before they are woken, and no arrival overtakes a waiter. A writer or an
//!     upgradable reader leaves in the same step that grants the next claim, and the last reader leaves the word CLOSED.
//!   * Where more than two wait, and the wake has to reach another worker or thread, the lock is *opened*: it is free, and
//!     the first of them is woken to compete with arrivals. Handed over, it would stand still until that waiter runs, and all
//!     others would queue. The waiter settles as it goes in. That wakes the next one that may go in beside it, or closes the
//!     lock again for a writer that waits. Until that waiter comes, or a late unlock wakes another, the others sleep. A waiter
//!     that was woken in vain goes back to the front of its lane, and is handed the lock a millisecond after its first wake.
//! * **No waiter is forgotten**: an arrival queues and a holder leaves by read-modify-writes of one word. Either the arrival
//!   sees that the holder has left, or the holder sees the flag. While an AWAITED lock has no holder, a woken waiter is on its
//!   way. It comes under the lock of the queue, whether it goes in, queues again or gives up. So the next unlock knows that it
//!   has to wake another, and an unlock that it does not come for a millisecond wakes another as well.
//! * **Most unlocks pass over the queue** while a woken waiter is on its way. Some of them look for how long. The unlock of a
//!   CLOSED lock always looks into the queue: left CLOSED without a holder, the lock would keep all arrivals out.
//! * **A recursive reader** passes a CLOSED word, and counts as one more reader before the writer. If it comes between the
//!   leave of the last reader and its settling, it is itself the last reader of a CLOSED lock, and settles again.
//! * **Phase-fair**: a writer that leaves lets the waiting readers in, then the next writer (Brandenburg and Anderson,
//!   "Reader-Writer Synchronization for Shared-Memory Multiprocessor Real-Time Systems", 2009). Writer-first: it lets in the
//!   next writer.
//!
//! Rejected: readers that count themselves by an addition and take it back from a CLOSED word. Such a word is never known
//! to be free, and the gain over a compare-exchange is nothing where readers are few.
//!
//! Rejected: to open a short queue too. Two or three threads with a core each and tiny sections would take 9 to 28 ns, as on
//! parking_lot, and not microseconds. But a late reader would go in before a writer that waits alone.
//!
//! Rejected: slots for the readers of each worker. On two cores, beside one word with the same waits, slots take 0.9 to 1.1 of
//! its time where one use in eight writes. Where one in a thousand writes, they take 0.6 to 0.8 if each task or thread has a
//! core, and 1.0 to 1.1 if it has not. Each lock would have a cache line for each worker, and a writer would visit all of them.
//! Over the waits of this lock, with a bias to readers that a writer revokes (BRAVO), slots take 1.4 of the time without them
//! in the median, 0.6 to 20 in all. A wait for a wake costs hundreds of times as much as the shared cache line.

#![forbid(unsafe_code)]

use std::mem::offset_of;
use std::time::Instant;

use fibra_runtime::clock;

use crate::patience;
use crate::primitive::{AtomicU64, Ordering};
use crate::wait::{self, Admit, Looks, Outcome, Until, WaitQueue, Waiters, WorkerId};

/// How many waiters a short queue has at most: an unlock hands the lock over to them, whatever the wake takes.
pub(crate) const SHORT_QUEUE: u8 = 2;

const WRITTEN: u64 = 1;
const UPGRADABLE: u64 = 1 << 1;
const CLOSED: u64 = 1 << 2;
const AWAITED: u64 = 1 << 3;
const WOKEN: u64 = 1 << 4;
const ONE_READER: u64 = 1 << 5;
const FULL: u64 = 1 << 63;

const READERS_MASK: u64 = !(ONE_READER - 1);
const HELD_MASK: u64 = READERS_MASK | WRITTEN | UPGRADABLE;

/// The lanes of the queue: readers, writers and upgradable readers in their order, and the upgrade.
const LANES: usize = 3;
const READERS: usize = 0;
const CLAIMS: usize = 1;
const UPGRADES: usize = 2;

/// Decides which waiters go first when a writer leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Policy {
    /// The waiting readers, then the next writer.
    PhaseFair,
    /// The next writer.
    WriterFirst,
}

/// A way to hold the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    Read,
    Upgradable,
    Write,
}

impl Hold {
    const fn bits(this: Option<Hold>) -> u64 {
        match this {
            None => 0,
            Some(Hold::Read) => ONE_READER,
            Some(Hold::Upgradable) => UPGRADABLE,
            Some(Hold::Write) => WRITTEN,
        }
    }
}

/// What a waiter waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    Read,
    Write,
    Upgradable,
    /// To write, by the upgradable reader.
    Upgrade,
}

impl Claim {
    fn lane(self) -> usize {
        match self {
            Claim::Read => READERS,
            Claim::Write | Claim::Upgradable => CLAIMS,
            Claim::Upgrade => UPGRADES,
        }
    }

    /// The word once this claim is granted, if its holds allow that. Ignores all waiters.
    fn grant(self, word: u64) -> Option<u64> {
        match self {
            Claim::Read if word & WRITTEN == 0 => Some(word + ONE_READER),
            Claim::Write if word & HELD_MASK == 0 => Some(word | WRITTEN),
            Claim::Upgradable if word & (WRITTEN | UPGRADABLE) == 0 => Some(word | UPGRADABLE),
            Claim::Upgrade if word & READERS_MASK == 0 => Some(word - UPGRADABLE + WRITTEN),
            _ => None,
        }
    }

    /// As [`grant`](Claim::grant), for an arrival, which does not overtake a waiter that keeps the lock CLOSED.
    fn grant_at_once(self, word: u64) -> Option<u64> {
        match self {
            Claim::Read | Claim::Write | Claim::Upgradable if word & CLOSED != 0 => None,
            _ => self.grant(word),
        }
    }

    /// The flags that it sets as it queues: later readers wait behind a writer and an upgrade.
    fn flags(self) -> u64 {
        match self {
            Claim::Read | Claim::Upgradable => AWAITED,
            Claim::Write | Claim::Upgrade => AWAITED | CLOSED,
        }
    }
}

/// The word and the queue.
pub(crate) struct State {
    word: AtomicU64,
    queue: WaitQueue<Known, Waiter, LANES>,
    policy: Policy,
    /// How many waiters a short queue has at most.
    short_queue: u8,
}

/// What the lock knows of its waiters.
struct Known {
    waiters: usize,
    /// The writers among them.
    writers: usize,
    /// When a waiter was woken to compete that has not come yet.
    on_its_way: Option<Instant>,
}

impl Known {
    fn enters(&mut self, claim: Claim) {
        self.waiters += 1;
        self.writers += usize::from(claim == Claim::Write);
    }

    fn leaves(&mut self, claim: Claim) {
        self.waiters -= 1;
        self.writers -= usize::from(claim == Claim::Write);
    }
}

/// A waiter's data, which goes with it from one sleep to the next.
struct Waiter {
    claim: Claim,
    /// The worker on which it runs.
    worker: Option<WorkerId>,
    /// When it was woken for the first time, to compete.
    woken: Option<Instant>,
    /// It was handed the lock.
    holds: bool,
}

impl Waiter {
    /// Returns true if the caller runs on the same worker: the waiter runs next, without a wake that takes its time.
    fn is_here(&self) -> bool {
        self.worker.is_some_and(WorkerId::is_current)
    }

    fn is_overdue(&self, now: Instant) -> bool {
        self.woken.is_some_and(|woken| patience::is_over(woken, now))
    }
}

/// How an unlock treats waiters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unlock {
    /// In a long queue they may have to compete with arrivals.
    Usual,
    /// They are handed the lock.
    Fair,
}

/// A hold that changes as the lock settles.
#[derive(Clone, Copy)]
struct Change {
    from: u64,
    to: u64,
    readers_first: bool,
    unlock: Unlock,
}

impl Change {
    /// No hold changes.
    const NONE: Change = Change { from: 0, to: 0, readers_first: false, unlock: Unlock::Usual };
}

impl State {
    /// The offset of the queue, which a description of a wait starts from.
    pub(crate) const QUEUE: isize = offset_of!(State, queue) as isize;

    pub(crate) const fn new(policy: Policy, short_queue: u8) -> Self {
        let known = Known { waiters: 0, writers: 0, on_its_way: None };
        State { word: AtomicU64::new(0), queue: WaitQueue::new(known), policy, short_queue }
    }

    /// Lets a reader in, unless the word is CLOSED.
    #[inline]
    pub(crate) fn try_read(&self) -> bool {
        self.read_unless(WRITTEN | CLOSED | FULL)
    }

    /// Lets a reader in, also past CLOSED: it may hold the lock already, and the waiting writer waits for it.
    #[inline]
    pub(crate) fn try_read_recursive(&self) -> bool {
        self.read_unless(WRITTEN | FULL)
    }

    #[inline]
    fn read_unless(&self, in_the_way: u64) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & in_the_way == 0 {
            // Acquire: pairs with the Release of the last writer.
            match self.word.compare_exchange_weak(
                seen,
                seen + ONE_READER,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Returns true if the next reader is refused.
    pub(crate) fn is_full(&self) -> bool {
        // Relaxed: nothing is read through it.
        self.word.load(Ordering::Relaxed) & FULL != 0
    }

    /// Lets a writer in, if the lock is free.
    #[inline]
    pub(crate) fn try_write(&self) -> bool {
        // Acquire: pairs with the Release of all holders before.
        let is_locked = self.word.compare_exchange(0, WRITTEN, Ordering::Acquire, Ordering::Relaxed).is_ok();
        is_locked || self.try_claim(Claim::Write)
    }

    /// Grants `claim`, if it need not wait. A reader is not refused by a full count here: its caller has checked.
    #[inline]
    pub(crate) fn try_claim(&self, claim: Claim) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while let Some(granted) = claim.grant_at_once(seen) {
            // Acquire: pairs with the Release of all holders before.
            match self.word.compare_exchange_weak(seen, granted, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Waits for `claim`. Returns true if it was granted.
    #[cold]
    #[track_caller]
    pub(crate) fn wait(&self, claim: Claim, until: Until) -> bool {
        let mut waiter = Waiter { claim, worker: wait::current_worker(), woken: None, holds: false };
        loop {
            let outcome;
            (outcome, waiter) = self.queue.wait(
                claim.lane(),
                waiter,
                until.spinning(),
                |known, waiter, waiters| self.enter(known, waiter, waiters),
                || (),
                |known, waiter, waiters, _| {
                    known.leaves(waiter.claim);
                    // Others may have waited behind this claim alone.
                    self.settle_from(Change::NONE, known, waiters);
                },
            );
            match outcome {
                Outcome::Done(()) => return true,
                Outcome::Served if waiter.holds => return true,
                // It comes back to the queue whether the lock is free or not: see `Known::on_its_way`.
                Outcome::Served => _ = wait::back_off_until(Looks::Often, || self.is_open(claim)),
                // The lock may be open while the worker of a woken waiter computes.
                Outcome::TimedOut | Outcome::Cancelled => return self.try_claim(claim),
            }
        }
    }

    fn enter(
        &self,
        known: &mut Known,
        waiter: &mut Waiter,
        waiters: &mut Waiters<'_, Waiter, LANES>,
    ) -> Admit<()> {
        let is_woken = waiter.woken.is_some();
        if is_woken {
            known.on_its_way = None;
            // Relaxed: it publishes nothing. Later unlocks come to the queue, behind this waiter.
            self.word.fetch_and(!WOKEN, Ordering::Relaxed);
        }
        if !self.claim_or_flag(waiter.claim) {
            known.enters(waiter.claim);
            return if is_woken { Admit::Front } else { Admit::Back };
        }
        if is_woken {
            let readers_first = self.policy == Policy::PhaseFair;
            self.settle_from(Change { readers_first, ..Change::NONE }, known, waiters);
        }
        Admit::Done(())
    }

    /// Returns true if an arrival with this claim would go in.
    fn is_open(&self, claim: Claim) -> bool {
        // Relaxed: a hint.
        claim.grant_at_once(self.word.load(Ordering::Relaxed)).is_some()
    }

    /// Grants the claim of an arrival, or sets the flags of a waiter. Under the lock of the queue.
    fn claim_or_flag(&self, claim: Claim) -> bool {
        while !self.try_claim(claim) {
            let mut seen = self.word.load(Ordering::Relaxed);
            while claim.grant_at_once(seen).is_none() {
                // Relaxed: it publishes nothing. The lock of the queue publishes the waiter.
                let flagged = seen | claim.flags();
                match self.word.compare_exchange_weak(seen, flagged, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return false,
                    Err(now) => seen = now,
                }
            }
        }
        true
    }

    /// Lets a reader out. Returns true if it was the last one and others wait: the caller settles.
    #[inline]
    #[must_use]
    pub(crate) fn leave_read(&self) -> bool {
        // Release: pairs with the Acquire of the next writer, or of the caller that grants its claim.
        let before = self.word.fetch_sub(ONE_READER, Ordering::Release);
        before & (READERS_MASK | AWAITED) == ONE_READER | AWAITED
    }

    /// Lets the writer out, or makes it a reader of kind `to`, if the lock has no waiters. A writer holds it alone.
    #[inline]
    pub(crate) fn try_leave_write(&self, to: Option<Hold>) -> bool {
        // Release: pairs with the Acquire of the next holder.
        self.word.compare_exchange(WRITTEN, Hold::bits(to), Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Lets the upgradable reader out, or makes it a plain one, if the lock has no waiters.
    #[inline]
    pub(crate) fn try_leave_upgradable(&self, to: Option<Hold>) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & AWAITED == 0 {
            let left = seen - UPGRADABLE + Hold::bits(to);
            // Release: pairs with the Acquire of the next writer.
            match self.word.compare_exchange_weak(seen, left, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Makes the hold `from` of the caller `to`, and lets the next ones in.
    #[cold]
    pub(crate) fn exchange(&self, from: Hold, to: Option<Hold>, unlock: Unlock) {
        let readers_first = from == Hold::Write && self.policy == Policy::PhaseFair;
        self.change(Change { from: Hold::bits(Some(from)), to: Hold::bits(to), readers_first, unlock });
    }

    /// Lets the next ones in, after the last reader has left.
    #[cold]
    pub(crate) fn settle(&self, unlock: Unlock) {
        self.change(Change { unlock, ..Change::NONE });
    }

    fn change(&self, change: Change) {
        if !self.passes_over(change) {
            self.queue.with(|known, waiters| self.settle_from(change, known, waiters));
        }
    }

    /// Makes a change without a look into the queue, if a woken waiter is on its way, except now and then. Returns true if it
    /// did.
    fn passes_over(&self, change: Change) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        // A writer that becomes a reader lets the waiting readers in.
        if seen & WOKEN == 0 || change.unlock == Unlock::Fair || change.to != 0 {
            return false;
        }
        let passes = self.queue.beside_lock();
        // Relaxed: a hint. Where two count at a time, one of them is not counted.
        let count = passes.load(Ordering::Relaxed).wrapping_add(1);
        passes.store(count, Ordering::Relaxed);
        if patience::is_look(count) {
            return false;
        }
        while seen & (WOKEN | CLOSED) == WOKEN {
            let next = seen - change.from;
            if next == seen {
                return true;
            }
            // Release: pairs with the Acquire of the next holder.
            match self.word.compare_exchange_weak(seen, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    fn settle_from(&self, change: Change, known: &mut Known, waiters: &mut Waiters<'_, Waiter, LANES>) {
        let mut seen = self.word.load(Ordering::Relaxed);
        let (plan, hand_off) = loop {
            let plan =
                Self::plan(seen - change.from + change.to, change.readers_first, known.writers, waiters);
            let hand_off = self.hand_off(&plan, change.unlock, known, waiters);
            let next = match hand_off {
                HandOff::Direct => plan.word,
                // The one that is woken leaves the queue.
                HandOff::Compete(..) if known.waiters == 1 => plan.held,
                HandOff::Compete(..) | HandOff::None => AWAITED | WOKEN | plan.held,
            };
            // Release: pairs with the Acquire of callers that lock from now on. Acquire: pairs with the Release of the
            // readers that have left; the wakes pass it on.
            match self.word.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break (plan, hand_off),
                Err(now) => seen = now,
            }
        };
        let mut serve = |waiter: &mut Waiter| {
            known.leaves(waiter.claim);
            match hand_off {
                HandOff::Compete(_, now) => waiter.woken = waiter.woken.or(Some(now)),
                _ => waiter.holds = true,
            }
        };
        match hand_off {
            HandOff::None => {}
            HandOff::Direct => {
                if let Some(claim) = plan.claim {
                    waiters.serve_front(claim.lane(), &mut serve);
                }
                while plan.admits_readers && waiters.serve_front(READERS, &mut serve).is_some() {}
            }
            HandOff::Compete(lane, now) => {
                waiters.serve_front(lane, serve);
                known.on_its_way = Some(now);
                // Relaxed: a hint, as in `passes_over`.
                self.queue.beside_lock().store(0, Ordering::Relaxed);
            }
        }
    }

    /// Decides how the waiters of a plan go in.
    fn hand_off(
        &self,
        plan: &Plan,
        unlock: Unlock,
        known: &Known,
        waiters: &Waiters<'_, Waiter, LANES>,
    ) -> HandOff {
        let readers = plan.admits_readers.then_some(READERS);
        let claims = plan.claim.map(Claim::lane);
        let lanes = if plan.readers_first { [readers, claims] } else { [claims, readers] };
        let lanes = || lanes.into_iter().flatten().filter(|lane| !waiters.is_empty(*lane));
        // An upgrade holds the lock already.
        let is_strict = unlock == Unlock::Fair || plan.claim == Some(Claim::Upgrade);
        let is_short = known.on_its_way.is_none() && known.waiters <= usize::from(self.short_queue);
        let Some(first) = lanes().next().filter(|_| !is_strict && !is_short) else {
            return HandOff::Direct;
        };
        let now = clock::now();
        if lanes().filter_map(|lane| waiters.front(lane)).any(|waiter| waiter.is_overdue(now)) {
            return HandOff::Direct;
        }
        if known.on_its_way.is_some_and(|woken| !patience::is_over(woken, now)) {
            return HandOff::None;
        }
        let are_here = |lane| match lane {
            READERS => waiters.iter(READERS).all(Waiter::is_here),
            lane => waiters.front(lane).is_some_and(Waiter::is_here),
        };
        if lanes().all(are_here) { HandOff::Direct } else { HandOff::Compete(first, now) }
    }

    /// What may be granted beside the holds of `word`.
    ///
    /// That is the readers if they go first; then the longest claim, of which an upgrade is the first; then the readers if
    /// no claim is left that closes the lock.
    fn plan(word: u64, readers_first: bool, writers: usize, waiters: &Waiters<'_, Waiter, LANES>) -> Plan {
        let held = word & HELD_MASK;
        let mut plan = Plan { held, word: held, readers_first, admits_readers: false, claim: None };
        let mut claims = waiters.iter(UPGRADES).chain(waiters.iter(CLAIMS)).map(|waiter| waiter.claim);
        let mut next = claims.next();
        let mut closing = writers + usize::from(next == Some(Claim::Upgrade));
        if word & WRITTEN == 0 {
            if readers_first {
                plan.admit_readers(waiters);
            }
            if let Some((claim, granted)) = next.and_then(|claim| Some((claim, claim.grant(plan.word)?))) {
                plan.word = granted;
                plan.claim = Some(claim);
                closing -= usize::from(claim.flags() & CLOSED != 0);
                next = claims.next();
            }
            if plan.word & WRITTEN == 0 && closing == 0 {
                plan.admit_readers(waiters);
            }
        }
        let is_awaited = next.is_some() || (!plan.admits_readers && !waiters.is_empty(READERS));
        plan.word |= if closing > 0 { CLOSED } else { 0 };
        plan.word |= if is_awaited { AWAITED } else { 0 };
        plan
    }

    /// Makes room for one more reader only.
    #[cfg(test)]
    pub(crate) fn leave_one_reader(&self) {
        self.word.store(FULL - ONE_READER, Ordering::Relaxed);
    }

    /// Decodes the word at this moment.
    pub(crate) fn look(&self) -> Snapshot {
        // Relaxed: nothing is read through it.
        let word = self.word.load(Ordering::Relaxed);
        Snapshot {
            readers: (word & READERS_MASK) / ONE_READER,
            upgradable: word & UPGRADABLE != 0,
            written: word & WRITTEN != 0,
            closed: word & CLOSED != 0,
            awaited: word & AWAITED != 0,
        }
    }
}

/// How the waiters of a plan go in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandOff {
    /// They are handed the lock.
    Direct,
    /// The first of this lane is woken now, and competes with arrivals.
    Compete(usize, Instant),
    /// They wait on: another waiter that competes is on its way.
    None,
}

/// What settling does: the next word, and which waiters it serves.
struct Plan {
    /// The holds of those that are in already.
    held: u64,
    /// The next word, if the waiters are handed the lock.
    word: u64,
    readers_first: bool,
    admits_readers: bool,
    claim: Option<Claim>,
}

impl Plan {
    /// Adds the waiting readers, once.
    fn admit_readers(&mut self, waiters: &Waiters<'_, Waiter, LANES>) {
        if !self.admits_readers {
            self.word += waiters.len(READERS) as u64 * ONE_READER;
            self.admits_readers = true;
        }
    }
}

/// The word, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    pub(crate) readers: u64,
    pub(crate) upgradable: bool,
    pub(crate) written: bool,
    pub(crate) closed: bool,
    pub(crate) awaited: bool,
}
