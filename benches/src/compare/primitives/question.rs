//! The questions.

use std::time::Duration;

use crate::compare::question::{self, Row, Size, When};

use Question::*;

/// One of so many times the lock that most read is locked for writing.
pub(in crate::compare) const READS: u64 = 8;

/// How many slots a bounded channel has, but for the one of a ping-pong.
pub(in crate::compare) const SLOTS: usize = 128;

/// How many permits the semaphore has.
pub(in crate::compare) const PERMITS: usize = 3;

/// How many tasks want the lock that most read.
pub(in crate::compare) const READERS: u64 = 64;

/// How many tasks want the reentrant mutex over a yield.
pub(in crate::compare) const LOCKERS: u64 = 64;

/// How many tasks want a permit.
pub(in crate::compare) const ACQUIRERS: u64 = 1_000;

/// How many tasks want what is held for a moment, other than a mutex.
pub(in crate::compare) const CONTENDERS: u64 = 8;

/// How many tasks meet, or wait for what one does.
pub(in crate::compare) const CROWD: u64 = 64;

/// How many tasks fill the slot, and how many empty it.
pub(in crate::compare) const SIDE: u64 = 10;

/// How many tasks receive what one sends.
pub(in crate::compare) const RECEIVERS: u64 = 8;

/// How often each task is to be served at least where many want one thing, so that their beginning does not
/// count much.
const SHARE: u64 = 100;

/// How long a sample is at least where many want one thing, so that also threads that take turns by time
/// slices have all had theirs.
const CROWDED: Duration = Duration::from_millis(80);

/// How long a sample is at least where no task yields.
const BRIEF: Duration = Duration::from_millis(200);

/// Where the two tasks of a pair run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) enum Place {
    /// Beside each other, as the library likes it best: fibra's on one worker.
    Together,
    /// Each on a worker of its own, and each worker on a processor of its own.
    Apart,
}

/// A primitive at which many tasks meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) enum Meeting {
    /// One barrier.
    Barrier,
    /// A wait group for each round.
    WaitGroup,
    /// An event that counts down, for each round.
    Countdown,
    /// An event that stays set, for each round: the last to come sets it.
    ManualEvent,
}

/// A primitive at which many tasks wait until one task wakes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) enum Call {
    /// An auto-reset event.
    Event,
    /// A condition variable, of whose waiters one is notified.
    NotifyOne,
    /// A condition variable, of whose waiters all are notified.
    NotifyAll,
}

/// One kind of operation. Ping-pongs count there and back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) enum Question {
    /// Lock and unlock of a mutex without contention.
    MutexFree,
    /// Lock and unlock for writing, without readers.
    WriteFree,
    /// Acquire and release of a semaphore without contention.
    SemaphoreFree,
    /// Set an event and wait at it.
    EventFree,
    /// Send and receive by one task over a channel of 128 slots.
    ChannelFree,
    /// Lock, yield, unlock, where so many tasks want the mutex.
    MutexOverYield(u16),
    /// Lock, count, unlock, where so many tasks want the mutex.
    MutexTiny(u16),
    /// Lock, count, unlock, by two tasks that are apart.
    MutexApart,
    /// Lock and unlock for reading, without writers.
    ReadFree,
    /// Over two channels of one slot.
    PingPong(Place),
    /// Over two channels without slots.
    Rendezvous(Place),
    /// Over two events.
    Event(Place),
    /// Over one mutex and one condition variable.
    Condition(Place),
    /// A request with a oneshot for the reply, to a task that replies.
    Call(Place),
    /// A message through a channel of 128 slots from one producer.
    Bounded(Place),
    /// A message through a channel of 128 slots from one of eight producers.
    BoundedEight,
    /// A message through a channel without bounds.
    Unbounded(Place),
    /// A message from either of two channels of 128 slots, each with a producer.
    Select,
    /// Lock, yield, unlock, where many tasks do so for reading and every eighth time for writing.
    ReadWrite,
    /// Acquire, yield, release, where a thousand tasks want one of three permits.
    Semaphore,
    /// Lock, yield, unlock, where 64 tasks want the reentrant mutex.
    ReentrantOverYield,
    /// Lock and unlock, where so many tasks do so for reading and every eighth time for writing.
    ReadWriteTiny(u16),
    /// Lock, count, unlock, where eight tasks want the reentrant mutex.
    ReentrantTiny,
    /// Acquire, count, release, where eight tasks want one of three permits.
    SemaphoreTiny,
    /// A message that one of eight receivers gets; all get what one task broadcasts.
    Broadcast,
    /// A value that one of eight receivers sees; all see each value that one task sets.
    Watch,
    /// Come to a meeting of many tasks and wait for the others, round after round.
    Meet(Meeting),
    /// Wake one of many tasks that wait, and hear of it.
    Wake(Call),
    /// Put a number into a slot and take it out, where many tasks do either at one condition variable, and each
    /// notifies all others.
    Slot,
    /// Look at a mutex that is locked.
    LockedLook,
    /// Look at a channel of 128 slots that is empty.
    EmptyLook,
    /// Lock and unlock of a reentrant mutex without contention.
    ReentrantFree,
    /// Lock and unlock for reading, with the right to write later, without contention.
    UpgradableFree,
    /// Notify a condition variable without waiters.
    NotifyFree,
    /// Set an event that stays set, and wait at it.
    ManualEventFree,
    /// Ask for what is to be done once, and was.
    OnceFree,
    /// Get a value that was initialized before.
    CellFree,
    /// Make a oneshot, send and receive.
    OneshotFree,
    /// Send and receive by one task over a broadcast channel of 128 slots.
    BroadcastFree,
    /// Set a value, and see it.
    WatchFree,
    /// Send to one of two channels of 128 slots, and receive from either.
    SelectFree,
    /// Come to a barrier of one task.
    BarrierFree,
    /// Count one in and out of a wait group, and wait for none.
    WaitGroupFree,
    /// Make an event that counts down from one, signal and wait.
    CountdownFree,
}

impl Question {
    /// Where the tasks of a pair run; together, where it is about no pair.
    pub(in crate::compare) fn place(self) -> Place {
        match self {
            PingPong(place) | Rendezvous(place) | Event(place) | Condition(place) | Call(place)
            | Bounded(place) | Unbounded(place) => place,
            MutexApart => Place::Apart,
            _ => Place::Together,
        }
    }

    /// Whether many tasks go on in turns.
    pub(in crate::compare) fn takes_turns(self) -> bool {
        matches!(self, MutexOverYield(_) | ReentrantOverYield | ReadWrite | Semaphore)
    }
}

/// As many operations as fill a longer time, and enough for each of the tasks.
const fn over_yields(tasks: u64) -> Size {
    Size::Filling { at_least: CROWDED, operations: SHARE * tasks }
}

/// For tasks that do not yield.
const fn briefly(tasks: u64) -> Size {
    Size::Filling { at_least: BRIEF, operations: SHARE * tasks }
}

impl question::Question for Question {
    const ALL: &'static [(&'static str, &'static [Row<Self>])] = &[
        ("locks", LOCKS),
        ("hand-over", PAIRS),
        ("crowds", CROWDS),
        ("free", FREE),
        ("hand-over, apart", APART),
    ];
}

const LOCKS: &[Row<Question>] = &[
    (When::One, MutexFree, "mutex, free", Size::ANY),
    (When::One, ReadFree, "read lock, free", Size::ANY),
    (When::One, WriteFree, "write lock, free", Size::ANY),
    (When::One, SemaphoreFree, "semaphore, free", Size::ANY),
    (When::More, MutexTiny(2), "mutex, tiny section, 2 tasks", briefly(2)),
    (When::More, MutexApart, "mutex, tiny section, 2 tasks apart", briefly(2)),
    (When::More, MutexTiny(8), "mutex, tiny section, 8 tasks", briefly(8)),
    (When::More, MutexTiny(64), "mutex, tiny section, 64 tasks", briefly(64)),
    (When::More, ReentrantTiny, "reentrant mutex, tiny section, 8 tasks", briefly(CONTENDERS)),
    (When::More, ReadWriteTiny(8), "1 write in 8, tiny section, 8 tasks", briefly(8)),
    (When::More, ReadWriteTiny(64), "1 write in 8, tiny section, 64 tasks", briefly(64)),
    (When::More, SemaphoreTiny, "semaphore, tiny section, 3 of 8 tasks", briefly(CONTENDERS)),
    (When::One, MutexOverYield(2), "mutex over a yield, 2 tasks", over_yields(2)),
    (When::Always, MutexOverYield(64), "mutex over a yield, 64 tasks", over_yields(64)),
    (When::One, MutexOverYield(1000), "mutex over a yield, 1000 tasks", over_yields(1000)),
    (When::Always, ReentrantOverYield, "reentrant mutex over a yield, 64 tasks", over_yields(LOCKERS)),
    (When::Always, ReadWrite, "1 write in 8, yield, 64 tasks", over_yields(READERS)),
    (When::Always, Semaphore, "semaphore, 3 of 1000 tasks", over_yields(ACQUIRERS)),
];

const PAIRS: &[Row<Question>] = &[
    (When::One, EventFree, "event, set and wait, free", Size::ANY),
    (When::One, ChannelFree, "128 slots, one task alone", Size::ANY),
    (When::Always, PingPong(Place::Together), "ping-pong, 1 slot", Size::ANY),
    (When::Always, Rendezvous(Place::Together), "ping-pong, rendezvous", Size::ANY),
    (When::Always, Event(Place::Together), "ping-pong, event", Size::ANY),
    (When::Always, Condition(Place::Together), "ping-pong, condition variable", Size::ANY),
    (When::Always, Call(Place::Together), "call and oneshot reply", Size::ANY),
    (When::Always, Bounded(Place::Together), "128 slots, 1 producer", Size::ANY),
    (When::Always, BoundedEight, "128 slots, 8 producers", Size::ANY),
    (When::Always, Unbounded(Place::Together), "unbounded, 1 producer", Size::ANY),
    (When::Always, Select, "select of two, 128 slots", Size::ANY),
    (When::Always, Broadcast, "broadcast to 8 receivers", Size::ANY),
    (When::Always, Watch, "watch of 8 receivers", Size::ANY),
];

const CROWDS: &[Row<Question>] = &[
    (When::Always, Meet(Meeting::Barrier), "barrier, 64 tasks", over_yields(CROWD)),
    (When::Always, Meet(Meeting::WaitGroup), "wait group, 64 tasks", over_yields(CROWD)),
    (When::Always, Meet(Meeting::Countdown), "countdown, 64 tasks", over_yields(CROWD)),
    (When::Always, Meet(Meeting::ManualEvent), "manual-reset event, 64 tasks", over_yields(CROWD)),
    (When::Always, Wake(Call::Event), "auto-reset event, one of 64 tasks", over_yields(CROWD)),
    (When::Always, Wake(Call::NotifyOne), "condition variable, one of 64 tasks", over_yields(CROWD)),
    (When::Always, Wake(Call::NotifyAll), "condition variable, all 64 tasks", over_yields(CROWD)),
    (When::Always, Slot, "condition variable, slot of 10 and 10 tasks", over_yields(2 * SIDE)),
];

const FREE: &[Row<Question>] = &[
    (When::One, ReentrantFree, "reentrant mutex", Size::ANY),
    (When::One, UpgradableFree, "upgradable read lock", Size::ANY),
    (When::One, NotifyFree, "condition variable, notify without waiters", Size::ANY),
    (When::One, ManualEventFree, "manual-reset event, set and wait", Size::ANY),
    (When::One, OnceFree, "once, when done", Size::ANY),
    (When::One, CellFree, "once-cell, get when set", Size::ANY),
    (When::One, OneshotFree, "oneshot, send and receive", Size::ANY),
    (When::One, BroadcastFree, "broadcast, send and receive", Size::ANY),
    (When::One, WatchFree, "watch, send and receive", Size::ANY),
    (When::One, SelectFree, "select of two, one ready", Size::ANY),
    (When::One, BarrierFree, "barrier of one", Size::ANY),
    (When::One, WaitGroupFree, "wait group of one", Size::ANY),
    (When::One, CountdownFree, "countdown of one", Size::ANY),
    (When::One, LockedLook, "mutex, look when locked", Size::ANY),
    (When::One, EmptyLook, "128 slots, look when empty", Size::ANY),
];

const APART: &[Row<Question>] = &[
    (When::More, PingPong(Place::Apart), "ping-pong, 1 slot", Size::ANY),
    (When::More, Rendezvous(Place::Apart), "ping-pong, rendezvous", Size::ANY),
    (When::More, Event(Place::Apart), "ping-pong, event", Size::ANY),
    (When::More, Condition(Place::Apart), "ping-pong, condition variable", Size::ANY),
    (When::More, Call(Place::Apart), "call and oneshot reply", Size::ANY),
    (When::More, Bounded(Place::Apart), "128 slots, 1 producer", Size::ANY),
    (When::More, Unbounded(Place::Apart), "unbounded, 1 producer", Size::ANY),
];
