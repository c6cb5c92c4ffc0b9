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
//!  ASLEEP     the sleeper is off its stack                  set by who took it off; at home by the sleeper, before
//!  SHIELDED   a cancel must not end this sleep              set by the sleeper
//!  AT_END     one of the task does, at the task's end       set by the sleeper
//!  AT_HOME    the sleeper is a task that stays on its       set by its worker, with the first ASLEEP; stays
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
//! * Of all parties exactly one sees "asleep and no wake bit yet" and queues the sleeper: the first waker after
//!   `fall_asleep` (at home after `begin_in_task`), or the caller of `fall_asleep` when a bit was there first.
//! * A wake releases, and `why` acquires: what the waker wrote before its wake is seen by the sleeper after it.
//! * Cancel is sticky and lives in a word of its own. The canceller stores it and then looks here; whoever calls
//!   `fall_asleep` sets ASLEEP here and then looks there. Both pairs are sequentially consistent, so one of them sees
//!   the other (the store-load proof: were both to miss, each load would precede the other's store in the one order).
//! * AT_HOME spares two locked instructions of the four that a hand-over between neighbours takes otherwise. Whoever is told to queue
//!   such a task hands it to its worker, which looks when the task is off its stack and not before. So its sleep begins with ASLEEP:
//!   nobody has to find out whether it has left already. And a wake that is made on its worker's thread is a plain store: the
//!   timer fires there as well; of wakes without an epoch there is one at the most, and none beside those with one; and a
//!   canceller elsewhere leaves the word alone and tells the worker, which looks here itself. The first sleep begins without: its
//!   `fall_asleep` is the half of the pair with those cancellers who do not know yet that they have to tell.
//! * 56 bits of epoch last for 2,000 years at a million sleeps a second. 32 would wrap within the hour, and an I/O wake
//!   that was held that long would rouse a stranger's sleep.
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

/// The number of a sleep, as a waker carries it that may outlive the sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Epoch(u64);

/// What a waker owes after its wake.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woke {
    /// The waker found the sleeper asleep and was the first: it queues it.
    Queue,
    /// Somebody else queues the sleeper, or there is nobody to wake.
    Left,
    /// The worker of the task is to look, by [`Word::cancel_at_home`].
    AtHome,
}

/// Which cancels end a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Heeded {
    Nothing,
    Open,
    /// Also one of the task, which the shield around its end would keep away.
    AtEnd,
}

/// What whoever took the sleeper off its stack owes.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fallen {
    Asleep,
    /// A wake came first; the caller makes the sleeper ready.
    Roused,
}

impl Word {
    pub(crate) const fn new() -> Self {
        Word(AtomicU64::new(0))
    }

    /// Starts the next sleep. By the running sleeper only, before anybody can know of the sleep.
    pub(crate) fn begin(&self, shielded: bool) -> Epoch {
        self.begin_in_task(if shielded { Heeded::Nothing } else { Heeded::Open }, false)
    }

    /// The same of a task. If all that it does from here on is to publish the sleep and to leave its stack, it sleeps `at_once`: at
    /// home it counts as asleep already.
    #[inline(always)]
    pub(crate) fn begin_in_task(&self, heeded: Heeded, at_once: bool) -> Epoch {
        // Relaxed: only this thread moves the epoch, and at home this flag.
        let seen = self.0.load(Ordering::Relaxed);
        let epoch = (seen & !FLAGS_MASK).wrapping_add(ONE_EPOCH);
        let at_home = seen & AT_HOME;
        let asleep = if at_once { at_home / (AT_HOME / ASLEEP) } else { 0 };
        // Release: who cancels and sees AT_HOME sees whose home that is. The sleep is published by the list's lock (or the timer's
        // wheel).
        self.0.store(epoch | heeded.flag() | at_home | asleep, Ordering::Release);
        Epoch(epoch)
    }

    /// Begins, shielded, as the sleep `epoch` of another word, for which this one stands. Before anybody can know of this one.
    pub(crate) fn begin_as(&self, epoch: Epoch) {
        // Relaxed: as in `begin`.
        self.0.store(epoch.0 | SHIELDED, Ordering::Relaxed);
    }

    /// Marks the sleeper as off its stack.
    pub(crate) fn fall_asleep(&self) -> Fallen {
        // SeqCst: the store of the pair with `cancel`'s load. Release: pairs with the Acquire half of a waker's
        // read-modify-write, which may go on to run the sleeper on its own thread.
        self.fall(ASLEEP)
    }

    /// The same by the worker on which the task stays, which its later sleeps count on.
    pub(crate) fn fall_asleep_at_home(&self) -> Fallen {
        match self.is_at_home() {
            true => self.fall(ASLEEP),
            false => self.fall(ASLEEP | AT_HOME),
        }
    }

    fn fall(&self, bits: u64) -> Fallen {
        // An addition, since the bits are never set here and its one instruction beats the loop that `fetch_or` needs.
        let before = self.0.fetch_add(bits, Ordering::SeqCst);
        debug_assert!(before & bits == 0, "a sleeper falls asleep once");
        if before & WAKE_MASK == 0 { Fallen::Asleep } else { Fallen::Roused }
    }

    /// True if the sleep has [begun](Word::begin_in_task) with that. By who takes the sleeper off its stack.
    #[inline(always)]
    pub(crate) fn is_down(&self) -> bool {
        // Relaxed: this thread has set it, or nobody.
        self.0.load(Ordering::Relaxed) & ASLEEP != 0
    }

    /// Takes that back, of a sleeper that does not leave its stack after all. False if a wake came first, for which it is queued: it
    /// has to leave.
    pub(crate) fn rise(&self) -> bool {
        // Relaxed: the exchange decides.
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen & ASLEEP != 0 {
            if seen & WAKE_MASK != 0 {
                return false;
            }
            // Relaxed: nothing is published, and a wake that comes later is looked for then.
            match self.0.compare_exchange_weak(seen, seen & !ASLEEP, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        true
    }

    /// True of a task that stays on its worker and has slept there.
    #[inline(always)]
    pub(crate) fn is_at_home(&self) -> bool {
        // Relaxed: its worker has set it, to whom alone it matters.
        self.0.load(Ordering::Relaxed) & AT_HOME != 0
    }

    /// Wakes the present sleep, whatever its epoch. For wakers that unlinked the sleeper under its list's lock.
    pub(crate) fn notify(&self) -> Woke {
        // Release: pairs with the Acquire in `why`. Acquire: pairs with `fall_asleep`.
        // An addition, as in `fall_asleep`: of one sleep one such wake is made at the most, and none beside a counted one.
        let before = self.0.fetch_add(NOTIFIED, Ordering::AcqRel);
        debug_assert!(before & NOTIFIED == 0, "a sleep is notified once");
        Self::owed(before)
    }

    /// The same by the worker of a sleeper that is at home. Nobody else changes the word then: see the head of this file.
    #[inline(always)]
    pub(crate) fn notify_at_home(&self) -> Woke {
        // Relaxed: the sleeper is on this thread.
        let before = self.0.load(Ordering::Relaxed);
        debug_assert!(before & AT_HOME != 0 && before & NOTIFIED == 0, "a sleep is notified once");
        // Release: as in `begin_in_task`.
        self.0.store(before | NOTIFIED, Ordering::Release);
        Self::owed(before)
    }

    /// Wakes sleep `epoch`, and does nothing to any other.
    pub(crate) fn notify_in(&self, epoch: Epoch) -> Woke {
        self.wake_in(epoch, NOTIFIED)
    }

    /// The present sleep, for who knows that it does not end meanwhile.
    pub(crate) fn epoch(&self) -> Epoch {
        // Relaxed: what keeps the sleep from ending orders this after its begin.
        Epoch(self.0.load(Ordering::Relaxed) & !FLAGS_MASK)
    }

    /// Ends sleep `epoch` by its deadline, and does nothing to any other.
    pub(crate) fn expire(&self, epoch: Epoch) -> Woke {
        self.wake_in(epoch, TIMED_OUT)
    }

    fn wake_in(&self, epoch: Epoch, flag: u64) -> Woke {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if seen & !FLAGS_MASK != epoch.0 {
                return Woke::Left;
            }
            // As in `notify`.
            match self.0.compare_exchange_weak(seen, seen | flag, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(before) => return Self::owed(before),
                Err(now) => seen = now,
            }
        }
    }

    /// Ends the present sleep by a cancel, if it is asleep, may be cancelled and nothing else woke it. By anybody.
    pub(crate) fn cancel(&self) -> Woke {
        self.cancel_unless(AT_HOME)
    }

    /// The same by the worker of the task.
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

    /// Goes back to sleep, shielded, until the notification lands that is on its way. True if it has landed.
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

    /// Takes back a cancel that did not concern this sleep; by the sleeper, which then goes on sleeping. What came beside
    /// the cancel stays.
    pub(crate) fn go_on(&self) {
        // Acquire: pairs with the Release of a wake that came meanwhile; `fall_asleep` will tell of it.
        self.0.fetch_and(!(CANCELLED | ASLEEP), Ordering::Acquire);
    }

    /// What woke the sleeper; of use to the sleeper itself.
    pub(crate) fn why(&self) -> Snapshot {
        // Acquire: pairs with the Release of the wake.
        Snapshot::of(self.0.load(Ordering::Acquire))
    }

    fn owed(before: u64) -> Woke {
        if before & ASLEEP != 0 && before & WAKE_MASK == 0 { Woke::Queue } else { Woke::Left }
    }
}

impl Heeded {
    #[inline(always)]
    const fn flag(self) -> u64 {
        match self {
            Heeded::Nothing => SHIELDED,
            Heeded::Open => 0,
            Heeded::AtEnd => AT_END,
        }
    }
}

/// The word, decoded.
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
    /// True for a sleeper that is off its stack and that nothing has woken.
    pub(crate) fn is_asleep(self) -> bool {
        self.asleep && !self.is_woken()
    }

    /// True if somebody has woken the sleeper.
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
        // Relaxed: a picture for people, nothing is read through it.
        Snapshot::of(self.0.load(Ordering::Relaxed)).fmt(f)
    }
}
