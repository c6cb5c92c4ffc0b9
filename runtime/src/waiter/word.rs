//! The wait word: the one atomic on which a sleeper and all its wakers meet.
//!
//! ```text
//!  63                                    8 7       0
//! ┌───────────────────────────────────────┬─────────┐
//! │ epoch: one per sleep, never repeats   │ flags   │
//! └───────────────────────────────────────┴─────────┘
//!  NOTIFIED   what was waited for has come                  set by a waker
//!  TIMED_OUT  the deadline of this sleep has passed         set by the timer
//!  CANCELLED  the task was cancelled while it slept         set by the canceller
//!  ASLEEP     the sleeper is off its stack                  set by its worker or thread; with AT_HOME, at begin
//!  SHIELDED   a cancel must not end this sleep              set by the sleeper
//!  AT_END     a cancel of the task itself ends this sleep,  set by the sleeper
//!             although the task is at its end
//!  AT_HOME    the sleeper is a task bound to its home       set by its worker, with the first ASLEEP; stays
//!             worker
//!
//!             begin                 fall_asleep                 notify / expire / cancel
//!  running ──────────▶ going to ───────────────▶ asleep ──────────────────────────────▶ to be queued
//!      ▲                sleep │                                                            │
//!      │                      │ a wake bit came first: fall_asleep says so                 │
//!      └──────────────────────┴────────────────────────────────────────────────────────────┘
//! ```
//!
//! * Only the running sleeper moves the epoch, with a plain store: a waker that carries an older epoch then fails its
//!   compare-exchange, and a waker without one has unlinked the node under the list's lock, so it cannot be late.
//! * Exactly one party sees "asleep and no wake bit yet" and queues the sleeper. It is the first
//!   waker after `fall_asleep` (with AT_HOME, after `begin_in_task`). If a wake bit came first, it
//!   is the caller of `fall_asleep`.
//! * A wake releases, and `why` acquires: the sleeper sees what the waker wrote before its wake.
//! * Cancel is sticky and lives in a word of its own. The canceller stores it and then loads this
//!   word. The caller of `fall_asleep` sets ASLEEP here and then loads the cancel word. Both pairs
//!   are sequentially consistent, so at least one of the two sees the store of its counterpart. If
//!   both missed, each load would precede the opposite store in the single total order, which is a
//!   cycle.
//! * AT_HOME makes wakes on the home worker plain stores, and leaves cancels to that worker.
//!   `scheduler/home_worker.rs` has the rules.
//! * 56 bits of epoch last for 2,000 years at a million sleeps a second. 32 would wrap within the hour, and an I/O wake
//!   that was held that long would wake an unrelated sleep.
//!
//! Rejected: a swap to set a bit (loses what a second waker left), and moving the epoch by a read-modify-write (a locked
//! instruction for nothing: stale wakers fail either way).

#![forbid(unsafe_code)]

use std::fmt;

use crate::base::primitive::{AtomicU64, Ordering};

const NOTIFIED: u64 = 1;
const TIMED_OUT: u64 = 1 << 1;
const CANCELLED: u64 = 1 << 2;
const ASLEEP: u64 = 1 << 3;
const SHIELDED: u64 = 1 << 4;
const AT_END: u64 = 1 << 5;
const AT_HOME: u64 = 1 << 6;

const WAKE_MASK: u64 = NOTIFIED | TIMED_OUT | CANCELLED;
const FLAGS_MASK: u64 = 0xff;
const ONE_EPOCH: u64 = 0x100;

/// The wait word of one waiter.
pub(crate) struct Word(AtomicU64);

/// Identifies one sleep, for a waker that may outlive it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Epoch(u64);

/// Tells what a waker owes after its wake.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woke {
    /// The waker was the first to find the sleeper asleep, and queues it.
    Queue,
    /// Another party queues the sleeper, or no sleep is left to wake.
    Left,
    /// The home worker of the task decides, by [`Word::cancel_at_home`].
    AtHome,
}

/// Selects the cancels that end a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CancelPolicy {
    Ignore,
    Open,
    /// Every cancel, also a cancel of the task that the shield around its end would keep away.
    AtEnd,
}

/// Tells what the caller owes that took the sleeper off its stack.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fallen {
    Asleep,
    /// A wake came first; the caller makes the sleeper ready.
    Roused,
}

impl Word {
    /// Tells readers of memory which bits count, and their value for a sleeper that is off its stack and has no wake bit.
    pub(crate) const SLEEPS: [u32; 2] = [(ASLEEP | WAKE_MASK) as u32, ASLEEP as u32];

    pub(crate) const fn new() -> Self {
        Word(AtomicU64::new(0))
    }

    /// Starts the next sleep.
    ///
    /// Called by the running sleeper, before the sleep is published.
    pub(crate) fn begin(&self, shielded: bool) -> Epoch {
        self.begin_in_task(if shielded { CancelPolicy::Ignore } else { CancelPolicy::Open }, false)
    }

    /// Starts the next sleep of a task.
    ///
    /// `at_once` promises that the task only publishes the sleep and then leaves its stack. With
    /// AT_HOME such a sleep counts as asleep from here on.
    #[inline(always)]
    pub(crate) fn begin_in_task(&self, policy: CancelPolicy, at_once: bool) -> Epoch {
        // Relaxed: only this thread moves the epoch, and only it and the home worker change
        // AT_HOME.
        let seen = self.0.load(Ordering::Relaxed);
        let epoch = (seen & !FLAGS_MASK).wrapping_add(ONE_EPOCH);
        let at_home = seen & AT_HOME;
        let asleep = if at_once { at_home / (AT_HOME / ASLEEP) } else { 0 };
        // Release: a canceller that sees AT_HOME sees the home worker too. The lock of the list, or
        // the timer wheel, publishes the sleep.
        self.0.store(epoch | policy.flag() | at_home | asleep, Ordering::Release);
        Epoch(epoch)
    }

    /// Marks the sleeper as off its stack.
    pub(crate) fn fall_asleep(&self) -> Fallen {
        // SeqCst: the store of the pair with `cancel`'s load. Release: pairs with the Acquire half of a waker's
        // read-modify-write, which may go on to run the sleeper on its own thread.
        self.fall(ASLEEP)
    }

    /// Marks the sleeper as off its stack, and as bound to its home worker for all later sleeps.
    ///
    /// Called by that worker.
    pub(crate) fn fall_asleep_at_home(&self) -> Fallen {
        match self.is_at_home() {
            true => self.fall(ASLEEP),
            false => self.fall(ASLEEP | AT_HOME),
        }
    }

    fn fall(&self, bits: u64) -> Fallen {
        // An addition: the bits are never set here, and it is one instruction where `fetch_or`
        // needs a loop.
        let before = self.0.fetch_add(bits, Ordering::SeqCst);
        debug_assert!(before & bits == 0, "a sleeper falls asleep once");
        if before & WAKE_MASK == 0 { Fallen::Asleep } else { Fallen::Roused }
    }

    /// Returns true if the sleep counts as asleep already, since it [began](Word::begin_in_task)
    /// so.
    ///
    /// Called by the worker that takes the sleeper off its stack.
    #[inline(always)]
    pub(crate) fn is_down(&self) -> bool {
        // Relaxed: only this thread sets it.
        self.0.load(Ordering::Relaxed) & ASLEEP != 0
    }

    /// Takes ASLEEP back from a sleeper that stays on its stack.
    ///
    /// Returns false if a wake came first: the sleeper is queued for it and has to leave its stack.
    pub(crate) fn rise(&self) -> bool {
        // Relaxed: the exchange decides.
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen & ASLEEP != 0 {
            if seen & WAKE_MASK != 0 {
                return false;
            }
            // Relaxed: nothing is published, and a later wake is looked for by its own load.
            match self.0.compare_exchange_weak(seen, seen & !ASLEEP, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        true
    }

    /// Returns true for a task that is bound to its home worker and has slept there.
    #[inline(always)]
    pub(crate) fn is_at_home(&self) -> bool {
        // Relaxed: only its worker sets it and relies on it.
        self.0.load(Ordering::Relaxed) & AT_HOME != 0
    }

    /// Wakes the present sleep, whatever its epoch.
    ///
    /// For wakers that have unlinked the sleeper under the lock of its list.
    pub(crate) fn notify(&self) -> Woke {
        // Release: pairs with the Acquire in `why`. Acquire: pairs with `fall_asleep`.
        // An addition, as in `fall_asleep`: a sleep gets at most one such wake.
        let before = self.0.fetch_add(NOTIFIED, Ordering::AcqRel);
        debug_assert!(before & NOTIFIED == 0, "a sleep is notified once");
        Self::owed(before)
    }

    /// Wakes the present sleep with a plain store, on the home worker of a sleeper with AT_HOME.
    ///
    /// No other thread writes the word then.
    #[inline(always)]
    pub(crate) fn notify_at_home(&self) -> Woke {
        // Relaxed: the sleeper is on this thread.
        let before = self.0.load(Ordering::Relaxed);
        debug_assert!(before & AT_HOME != 0 && before & NOTIFIED == 0, "a sleep is notified once");
        // Release: as in `begin_in_task`.
        self.0.store(before | NOTIFIED, Ordering::Release);
        Self::owed(before)
    }

    /// Returns the present sleep. The caller knows that it does not end meanwhile.
    pub(crate) fn epoch(&self) -> Epoch {
        // Relaxed: what keeps the sleep from ending orders this after its begin.
        Epoch(self.0.load(Ordering::Relaxed) & !FLAGS_MASK)
    }

    /// Ends sleep `epoch` by its deadline, and does nothing to any other.
    pub(crate) fn expire(&self, epoch: Epoch) -> Woke {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if seen & !FLAGS_MASK != epoch.0 {
                return Woke::Left;
            }
            // As in `notify`.
            match self.0.compare_exchange_weak(seen, seen | TIMED_OUT, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(before) => return Self::owed(before),
                Err(now) => seen = now,
            }
        }
    }

    /// Cancels the present sleep if it is asleep, not shielded and not woken.
    ///
    /// Callable from any thread.
    ///
    /// Leaves a sleep with AT_HOME to its home worker.
    pub(crate) fn cancel(&self) -> Woke {
        self.cancel_unless(AT_HOME)
    }

    /// Cancels the present sleep as [`cancel`](Word::cancel) does, on the home worker of the task.
    pub(crate) fn cancel_at_home(&self) -> Woke {
        self.cancel_unless(0)
    }

    fn cancel_unless(&self, theirs: u64) -> Woke {
        // SeqCst: the load of the pair with `fall_asleep`; the sticky cancel word was stored before.
        let mut seen = self.0.load(Ordering::SeqCst);
        loop {
            if seen & theirs != 0 {
                return Woke::AtHome;
            }
            if seen & ASLEEP == 0 || seen & (WAKE_MASK | SHIELDED) != 0 {
                return Woke::Left;
            }
            match self.0.compare_exchange_weak(seen, seen | CANCELLED, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(before) => return Self::owed(before),
                Err(now) => seen = now,
            }
        }
    }

    /// Goes back to sleep, shielded, until the pending notification lands.
    ///
    /// Returns true if it has landed already.
    pub(crate) fn await_landing(&self) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if seen & NOTIFIED != 0 {
                // Acquire: pairs with the Release in `notify`.
                return self.why().notified;
            }
            let again = (seen & (!FLAGS_MASK | AT_HOME)) | SHIELDED;
            match self.0.compare_exchange_weak(seen, again, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return false,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes back a cancel that did not concern this sleep, which goes on.
    ///
    /// Called by the sleeper. Other wake bits stay.
    pub(crate) fn go_on(&self) {
        // Acquire: pairs with the Release of a wake that came meanwhile. `fall_asleep` reports it.
        self.0.fetch_and(!(CANCELLED | ASLEEP), Ordering::Acquire);
    }

    /// Returns what woke the sleeper. Meaningful only to the sleeper itself.
    pub(crate) fn why(&self) -> Snapshot {
        // Acquire: pairs with the Release of the wake.
        Snapshot::of(self.0.load(Ordering::Acquire))
    }

    fn owed(before: u64) -> Woke {
        if before & ASLEEP != 0 && before & WAKE_MASK == 0 { Woke::Queue } else { Woke::Left }
    }
}

impl CancelPolicy {
    #[inline(always)]
    const fn flag(self) -> u64 {
        match self {
            CancelPolicy::Ignore => SHIELDED,
            CancelPolicy::Open => 0,
            CancelPolicy::AtEnd => AT_END,
        }
    }
}

/// Decodes the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    pub(crate) epoch: u64,
    pub(crate) notified: bool,
    pub(crate) timed_out: bool,
    pub(crate) cancelled: bool,
    pub(crate) asleep: bool,
    pub(crate) shielded: bool,
    pub(crate) at_end: bool,
}

impl Snapshot {
    /// Returns true for a sleeper that is off its stack and has no wake bit.
    pub(crate) fn is_asleep(self) -> bool {
        self.asleep && !self.is_woken()
    }

    /// Returns true if any wake bit is set.
    pub(crate) fn is_woken(self) -> bool {
        self.notified || self.timed_out || self.cancelled
    }

    fn of(bits: u64) -> Self {
        Snapshot {
            epoch: bits / ONE_EPOCH,
            notified: bits & NOTIFIED != 0,
            timed_out: bits & TIMED_OUT != 0,
            cancelled: bits & CANCELLED != 0,
            asleep: bits & ASLEEP != 0,
            shielded: bits & SHIELDED != 0,
            at_end: bits & AT_END != 0,
        }
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for debug output only.
        Snapshot::of(self.0.load(Ordering::Relaxed)).fmt(f)
    }
}
