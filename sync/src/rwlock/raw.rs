//! Who holds a read-write lock, who waits for it, and who goes next.
//!
//! ```text
//!  63 62                       4    3        2         1          0
//! ┌──┬─────────────────────────┬─────────┬────────┬────────────┬─────────┐
//! │ F│ readers                 │ AWAITED │ CLOSED │ UPGRADABLE │ WRITTEN │   the word
//! └──┴─────────────────────────┴─────────┴────────┴────────────┴─────────┘
//!  WRITTEN     a writer holds the lock, alone
//!  UPGRADABLE  one more reader holds it, who may become the writer
//!  CLOSED      a writer or an upgrade waits: later readers wait behind it
//!  AWAITED     somebody waits
//!  F           so many readers that the next one is refused
//!
//!                     a writer waits                     the readers are out
//!   ┌──────────────┐                 ┌────────────────┐                      ┌─────────┐
//!   │ readers,     │ ───────────────▶│ readers,       │ ────────────────────▶│ WRITTEN │
//!   │ the door open│ ◀───────────────│ CLOSED         │                      └─────────┘
//!   └──────────────┘  its time is up └────────────────┘                        │     │
//!           ▲                                ▲   the readers that waited go in │     │ the next writer
//!           └────────────────────────────────┴─────────────────────────────────┘     ▼
//!            (closed if another writer waits)                                     WRITTEN
//! ```
//!
//! | move | made by | how |
//! | --- | --- | --- |
//! | in, nobody in the way | who comes | compare-exchange; for a recursive reader only WRITTEN is in the way |
//! | out, a reader | the reader | subtraction; the last one out of a CLOSED lock settles |
//! | out, any other | the holder | compare-exchange; under the queues' lock if AWAITED |
//! | CLOSED and AWAITED set | who begins to wait | under the queues' lock, on a word that still is in its way |
//! | in, after a wait; flags cleared | who settles | under the queues' lock, before the wake |
//!
//! * **Settling** looks at the word and the queues, and lets in whoever may go: see [`Queues::plan`]. It does the same
//!   whoever calls it and however late, so that two who settle at once do no harm.
//! * Nobody slips past: a word that is AWAITED for a writer is never free, since a writer or an upgradable reader goes out
//!   by the same step that lets the next one in, and the last reader leaves the word CLOSED.
//! * To begin to wait and to go out are read-modify-writes of one word. So either the one who waits sees that the other
//!   is out, or the other sees the flag.
//! * A recursive reader goes past the door. To whoever closed it, it is one reader more: also one that comes between the last
//!   one's leave and its settling is out of a CLOSED lock last, and settles again.
//! * **Readers are admitted in one step**, however many they are: the step ends their *round*, and a reader holds the lock
//!   if the round it came in is over. They are woken after it, a batch at a time. One whose time runs out
//!   meanwhile finds its round over, and has the lock.
//! * A writer that settles as it leaves gives the turn to the readers (phase-fair: Brandenburg and Anderson, "Reader-Writer
//!   Synchronization for Shared-Memory Multiprocessor Real-Time Systems", 2009) or to the next writer (writers first).
//!
//! Rejected: readers that count themselves in by an addition and take it back where the door is closed. A word is then never
//! known to be free, and what it saves over a compare-exchange is nothing where readers are few.

use std::cell::Cell;

use crate::primitive::{AtomicU64, Ordering};
use crate::wait::list::{List, Node};
use crate::wait::{Lock, RawWake};

const WRITTEN: u64 = 1;
const UPGRADABLE: u64 = 1 << 1;
const CLOSED: u64 = 1 << 2;
const AWAITED: u64 = 1 << 3;
const ONE_READER: u64 = 1 << 4;
const FULL: u64 = 1 << 63;

const READERS_MASK: u64 = !(ONE_READER - 1);
const HELD_MASK: u64 = READERS_MASK | WRITTEN | UPGRADABLE;

/// Who goes first when a writer leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Policy {
    /// The readers that wait, then the next writer.
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

/// What is waited for one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    Write,
    Upgradable,
    /// To write, by the upgradable reader.
    Upgrade,
}

impl Claim {
    /// The word after this claim is granted, if `word` lets it be: nobody else is asked.
    fn grant(self, word: u64) -> Option<u64> {
        match self {
            Claim::Write if word & HELD_MASK == 0 => Some(word | WRITTEN),
            Claim::Upgradable if word & (WRITTEN | UPGRADABLE) == 0 => Some(word | UPGRADABLE),
            Claim::Upgrade if word & READERS_MASK == 0 => Some(word - UPGRADABLE + WRITTEN),
            _ => None,
        }
    }

    /// The same for one who has just come, and goes behind those who wait.
    fn grant_at_once(self, word: u64) -> Option<u64> {
        match self {
            Claim::Write if word != 0 => None,
            Claim::Upgradable if word & CLOSED != 0 => None,
            _ => self.grant(word),
        }
    }

    /// True if later readers wait behind it.
    fn closes(self) -> bool {
        self != Claim::Upgradable
    }
}

/// What a reader owes who went out.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Departure {
    Done,
    /// It was the last, and a writer waits: it settles.
    Last,
}

/// What became of somebody who was to wait.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It has the lock and does not wait.
    Taken,
    Queued,
}

/// What became of somebody who waits no longer.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It does not have the lock. It settles: others may have waited because of it.
    GaveUp,
    /// It has the lock, and nobody wakes it.
    Granted,
    /// It has the lock, and its wake is on its way.
    Woken,
}

/// Who was let in and is to be woken, after the queues' lock is released.
#[must_use]
pub(crate) struct Served {
    pub(crate) claimant: Option<RawWake>,
    /// Readers were: they are [`Queues::next_admitted`].
    pub(crate) readers: bool,
}

/// The node of a reader: the round that it came in.
pub(crate) type ReaderNode = Node<Cell<u32>>;

/// The word and the queues.
pub(crate) struct State {
    word: AtomicU64,
    pub(crate) queues: Lock<Queues>,
    policy: Policy,
}

impl State {
    pub(crate) const fn new(policy: Policy) -> Self {
        State { word: AtomicU64::new(0), queues: Lock::new(Queues::new()), policy }
    }

    /// Lets a reader in, if the door is open.
    #[inline]
    pub(crate) fn try_read(&self) -> bool {
        self.read_unless(WRITTEN | CLOSED | FULL)
    }

    /// Lets a reader in beside others, past the door: it may be inside already, where what closes the door waits for it.
    #[inline]
    pub(crate) fn try_read_recursive(&self) -> bool {
        self.read_unless(WRITTEN | FULL)
    }

    #[inline]
    fn read_unless(&self, in_the_way: u64) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & in_the_way == 0 {
            // Acquire: pairs with the Release of the writer that went out.
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

    /// True if there are so many readers that the next one is refused.
    pub(crate) fn is_full(&self) -> bool {
        // Relaxed: nothing is read through it.
        self.word.load(Ordering::Relaxed) & FULL != 0
    }

    /// Lets a writer in, if nobody holds the lock or waits.
    #[inline]
    pub(crate) fn try_write(&self) -> bool {
        // Acquire: pairs with the Release of all who went out.
        self.word.compare_exchange(0, WRITTEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Grants `claim`, if it need not wait.
    #[inline]
    pub(crate) fn try_claim(&self, claim: Claim) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while let Some(granted) = claim.grant_at_once(seen) {
            // Acquire: pairs with the Release of all who went out.
            match self.word.compare_exchange_weak(seen, granted, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Lets a reader out.
    #[inline]
    pub(crate) fn leave_read(&self) -> Departure {
        // Release: pairs with the Acquire of the writer that goes in next, or of who lets it in.
        let before = self.word.fetch_sub(ONE_READER, Ordering::Release);
        match before & (READERS_MASK | CLOSED) == ONE_READER | CLOSED {
            true => Departure::Last,
            false => Departure::Done,
        }
    }

    /// Lets the writer out, or makes it a reader of kind `to`, if nobody else holds the lock or waits. (Nobody else can
    /// hold it.)
    #[inline]
    pub(crate) fn try_leave_write(&self, to: Option<Hold>) -> bool {
        // Release: pairs with the Acquire of whoever goes in next.
        self.word.compare_exchange(WRITTEN, Hold::bits(to), Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Lets the upgradable reader out, or makes it a plain one, if nobody waits.
    #[inline]
    pub(crate) fn try_leave_upgradable(&self, to: Option<Hold>) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & AWAITED == 0 {
            let left = seen - UPGRADABLE + Hold::bits(to);
            // Release: pairs with the Acquire of the writer that goes in next.
            match self.word.compare_exchange_weak(seen, left, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Makes the hold `from` of the caller `to`, and lets in whoever may go then.
    pub(crate) fn exchange(&self, from: Hold, to: Option<Hold>) -> Served {
        let turn = match (from, self.policy) {
            (Hold::Write, Policy::PhaseFair) => Turn::Readers,
            _ => Turn::Claimants,
        };
        self.settle_from(Hold::bits(Some(from)), Hold::bits(to), turn)
    }

    /// Lets in whoever may go: by a reader that was the last, and by who gave up.
    pub(crate) fn settle(&self) -> Served {
        self.settle_from(0, 0, Turn::Claimants)
    }

    fn settle_from(&self, from: u64, to: u64, turn: Turn) -> Served {
        let mut queues = self.queues.lock();
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let plan = queues.plan(seen - from + to, turn);
            // Release: pairs with the Acquire of readers that go in by themselves from now on. Acquire: pairs with the
            // Release of the readers that went out; the wake hands it on to who is let in.
            match self.word.compare_exchange_weak(seen, plan.word, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return queues.carry_out(plan),
                Err(now) => seen = now,
            }
        }
    }

    /// Lets a reader in, or makes it wait for its round to end.
    ///
    /// # Safety
    /// As for [`List::push_back`]; the node belongs to a sleeper of this state and is only given to it.
    pub(crate) unsafe fn enqueue_reader(&self, node: &ReaderNode, wake: RawWake) -> Arrival {
        let mut queues = self.queues.lock();
        // A reader too many is refused before it comes here; a few more do no harm.
        while !self.read_unless(WRITTEN | CLOSED) {
            if self.set_in(AWAITED, |seen| seen & (WRITTEN | CLOSED) != 0) {
                node.data().set(queues.round);
                queues.readers_waiting += 1;
                // SAFETY: the caller's contract; the lock is held.
                unsafe { queues.readers.push_back(node, wake) };
                return Arrival::Queued;
            }
        }
        Arrival::Taken
    }

    /// Grants `claim`, or makes it wait for its turn.
    ///
    /// # Safety
    /// As for [`enqueue_reader`](State::enqueue_reader).
    pub(crate) unsafe fn enqueue_claim(&self, node: &Node<Claim>, wake: RawWake) -> Arrival {
        let claim = *node.data();
        let mut queues = self.queues.lock();
        let flags = AWAITED | if claim.closes() { CLOSED } else { 0 };
        while !self.try_claim(claim) {
            if self.set_in(flags, |seen| claim.grant_at_once(seen).is_none()) {
                *queues.waiting(claim) += 1;
                // SAFETY: the caller's contract; the lock is held. An upgrade goes before all others: nobody can be let in
                // before it.
                unsafe {
                    match claim {
                        Claim::Upgrade => queues.claimants.push_front(node, wake),
                        _ => queues.claimants.push_back(node, wake),
                    }
                }
                return Arrival::Queued;
            }
        }
        Arrival::Taken
    }

    /// Sets `flags` in a word that is `in_the_way`; false once it is not. Under the queues' lock.
    fn set_in(&self, flags: u64, in_the_way: impl Fn(u64) -> bool) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while in_the_way(seen) {
            // Relaxed: nothing is published by it; the queues' lock publishes the node.
            match self.word.compare_exchange_weak(seen, seen | flags, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Ends a reader's wait.
    ///
    /// # Safety
    /// `node` was queued here.
    pub(crate) unsafe fn withdraw_reader(&self, node: &ReaderNode) -> Fate {
        let mut queues = self.queues.lock();
        // SAFETY: by the caller's contract it is in this list or in none.
        let linked = unsafe { queues.readers.remove(node) };
        match (linked, node.data().get() == queues.round) {
            (false, _) => Fate::Woken,
            (true, false) => Fate::Granted,
            (true, true) => {
                queues.readers_waiting -= 1;
                Fate::GaveUp
            }
        }
    }

    /// Ends the wait of a claim.
    ///
    /// # Safety
    /// `node` was queued here.
    pub(crate) unsafe fn withdraw_claim(&self, node: &Node<Claim>) -> Fate {
        let mut queues = self.queues.lock();
        // SAFETY: by the caller's contract it is in this list or in none.
        match unsafe { queues.claimants.remove(node) } {
            false => Fate::Woken,
            true => {
                *queues.waiting(*node.data()) -= 1;
                Fate::GaveUp
            }
        }
    }

    /// Makes room for one more reader only.
    #[cfg(test)]
    pub(crate) fn crowd(&self) {
        self.word.store(FULL - ONE_READER, Ordering::Relaxed);
    }

    /// What the word says at this moment.
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

/// The word, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    pub(crate) readers: u64,
    pub(crate) upgradable: bool,
    pub(crate) written: bool,
    pub(crate) closed: bool,
    pub(crate) awaited: bool,
}

/// Whose turn it is when both wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    Readers,
    Claimants,
}

/// Who waits.
pub(crate) struct Queues {
    /// Those of rounds that are over hold the lock already and are about to be woken; they come first.
    readers: List<Cell<u32>>,
    /// Writers and upgradable readers in the order in which they came; an upgrade before all others.
    claimants: List<Claim>,
    /// The present round. Wraps: a node leaves the list long before its number comes again.
    round: u32,
    /// Readers of the present round.
    readers_waiting: u32,
    /// Claims that close the door.
    closing: u32,
    /// Those that do not.
    upgradable: u32,
}

/// What settling does: a new word, and who is let in by it.
struct Plan {
    word: u64,
    readers: bool,
    claimant: Option<Claim>,
}

impl Queues {
    const fn new() -> Self {
        Queues {
            readers: List::new(),
            claimants: List::new(),
            round: 0,
            readers_waiting: 0,
            closing: 0,
            upgradable: 0,
        }
    }

    fn waiting(&mut self, claim: Claim) -> &mut u32 {
        match claim.closes() {
            true => &mut self.closing,
            false => &mut self.upgradable,
        }
    }

    /// Who may go in beside those who hold `word`: the readers if it is their turn, then the longest waiting claim if it
    /// can be granted, then the readers if no claim is left that closes the door.
    fn plan(&self, word: u64, turn: Turn) -> Plan {
        let mut plan = Plan { word: word & HELD_MASK, readers: false, claimant: None };
        let mut closing = self.closing;
        if word & WRITTEN == 0 {
            if turn == Turn::Readers {
                self.admit(&mut plan);
            }
            if let Some(&claim) = self.claimants.front()
                && let Some(granted) = claim.grant(plan.word)
            {
                plan.word = granted;
                plan.claimant = Some(claim);
                closing -= u32::from(claim.closes());
            }
            if plan.word & WRITTEN == 0 && closing == 0 {
                self.admit(&mut plan);
            }
        }
        let waiting = self.closing + self.upgradable - u32::from(plan.claimant.is_some());
        let readers_stay = self.readers_waiting > 0 && !plan.readers;
        plan.word |= if closing > 0 { CLOSED } else { 0 };
        plan.word |= if waiting > 0 || readers_stay { AWAITED } else { 0 };
        plan
    }

    /// Adds the readers that wait, unless the plan has them already.
    fn admit(&self, plan: &mut Plan) {
        if self.readers_waiting > 0 && !plan.readers {
            plan.word += u64::from(self.readers_waiting) * ONE_READER;
            plan.readers = true;
        }
    }

    fn carry_out(&mut self, plan: Plan) -> Served {
        if plan.readers {
            self.round = self.round.wrapping_add(1);
            self.readers_waiting = 0;
        }
        let claimant = plan.claimant.and_then(|claim| {
            *self.waiting(claim) -= 1;
            self.claimants.pop_front()
        });
        Served { claimant, readers: plan.readers }
    }

    /// Unlinks a reader whose round is over.
    pub(crate) fn next_admitted(&mut self) -> Option<RawWake> {
        let round = self.round;
        self.readers.pop_front_if(|came| came.get() != round)
    }
}
