//! What is asked, and what fibra means to reach.

use std::time::Duration;

use crate::compare::question::{self, Bound, Size, Target};

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

/// How many tasks receive what one sends.
pub(in crate::compare) const RECEIVERS: u64 = 8;

/// How often each task is to be served at least where many want one thing, so that their beginning does not count much.
const SHARE: u64 = 100;

/// How long a sample is at least where many want one thing, so that also threads that take turns by time slices have all had
/// theirs.
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

/// What many tasks meet at.
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

/// What many tasks wait at, and one wakes them.
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
    /// Lock and unlock, where eight tasks do so for reading and every eighth time for writing.
    ReadWriteTiny,
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

impl question::Question for Question {
    fn all(workers: usize) -> Vec<Self> {
        let mut all = Vec::new();
        let pairs = |place| [PingPong(place), Rendezvous(place), Event(place), Condition(place), Call(place)];
        if workers == 1 {
            all.extend([
                MutexFree,
                ReadFree,
                WriteFree,
                SemaphoreFree,
                MutexOverYield(2),
                MutexOverYield(64),
            ]);
            all.extend([
                MutexOverYield(1000),
                ReentrantOverYield,
                ReadWrite,
                Semaphore,
                EventFree,
                ChannelFree,
            ]);
        } else {
            all.extend([MutexTiny(2), MutexApart, MutexTiny(8), MutexTiny(64), ReentrantTiny, ReadWriteTiny]);
            all.extend([SemaphoreTiny, MutexOverYield(64), ReentrantOverYield, ReadWrite, Semaphore]);
        }
        all.extend(pairs(Place::Together));
        all.extend([
            Bounded(Place::Together),
            BoundedEight,
            Unbounded(Place::Together),
            Select,
            Broadcast,
            Watch,
        ]);
        all.extend(
            [Meeting::Barrier, Meeting::WaitGroup, Meeting::Countdown, Meeting::ManualEvent].map(Meet),
        );
        all.extend([Call::Event, Call::NotifyOne, Call::NotifyAll].map(Wake));
        if workers == 1 {
            // Of one task alone, which other workers do not concern.
            all.extend([ReentrantFree, UpgradableFree, NotifyFree, ManualEventFree, OnceFree, CellFree]);
            all.extend([OneshotFree, BroadcastFree, WatchFree, SelectFree]);
            all.extend([BarrierFree, WaitGroupFree, CountdownFree]);
        } else {
            all.extend(pairs(Place::Apart));
            all.extend([Bounded(Place::Apart), Unbounded(Place::Apart)]);
        }
        all
    }

    fn subject(self) -> &'static str {
        match self {
            MutexFree | ReadFree | WriteFree | SemaphoreFree | MutexOverYield(_) | ReentrantOverYield
            | ReadWrite | Semaphore | MutexTiny(_) | MutexApart | ReentrantTiny | ReadWriteTiny
            | SemaphoreTiny => "locks",
            Meet(_) | Wake(_) => "crowds",
            ReentrantFree | UpgradableFree | NotifyFree | ManualEventFree | OnceFree | CellFree
            | OneshotFree | BroadcastFree | WatchFree | SelectFree | BarrierFree | WaitGroupFree
            | CountdownFree => "free",
            _ if self.place() == Place::Apart => "hand-over, apart",
            _ => "hand-over",
        }
    }

    fn name(self) -> String {
        match self {
            MutexFree => "mutex, free".to_owned(),
            MutexOverYield(tasks) => format!("mutex over a yield, {tasks} tasks"),
            MutexTiny(tasks) => format!("mutex, tiny section, {tasks} tasks"),
            MutexApart => "mutex, tiny section, 2 tasks apart".to_owned(),
            ReadFree => "read lock, free".to_owned(),
            WriteFree => "write lock, free".to_owned(),
            SemaphoreFree => "semaphore, free".to_owned(),
            EventFree => "event, set and wait, free".to_owned(),
            ChannelFree => "128 slots, one task alone".to_owned(),
            PingPong(_) => "ping-pong, 1 slot".to_owned(),
            Rendezvous(_) => "ping-pong, rendezvous".to_owned(),
            Event(_) => "ping-pong, event".to_owned(),
            Condition(_) => "ping-pong, condition variable".to_owned(),
            Call(_) => "call and oneshot reply".to_owned(),
            Bounded(_) => "128 slots, 1 producer".to_owned(),
            BoundedEight => "128 slots, 8 producers".to_owned(),
            Unbounded(_) => "unbounded, 1 producer".to_owned(),
            Select => "select of two, 128 slots".to_owned(),
            ReadWrite => format!("1 write in 8, yield, {READERS} tasks"),
            Semaphore => format!("semaphore, {PERMITS} of {ACQUIRERS} tasks"),
            ReentrantOverYield => format!("reentrant mutex over a yield, {LOCKERS} tasks"),
            ReadWriteTiny => format!("1 write in 8, tiny section, {CONTENDERS} tasks"),
            ReentrantTiny => format!("reentrant mutex, tiny section, {CONTENDERS} tasks"),
            SemaphoreTiny => format!("semaphore, tiny section, {PERMITS} of {CONTENDERS} tasks"),
            Broadcast => format!("broadcast to {RECEIVERS} receivers"),
            Watch => format!("watch of {RECEIVERS} receivers"),
            Meet(Meeting::Barrier) => format!("barrier, {CROWD} tasks"),
            Meet(Meeting::WaitGroup) => format!("wait group, {CROWD} tasks"),
            Meet(Meeting::Countdown) => format!("countdown, {CROWD} tasks"),
            Meet(Meeting::ManualEvent) => format!("manual-reset event, {CROWD} tasks"),
            Wake(Call::Event) => format!("auto-reset event, one of {CROWD} tasks"),
            Wake(Call::NotifyOne) => format!("condition variable, one of {CROWD} tasks"),
            Wake(Call::NotifyAll) => format!("condition variable, all {CROWD} tasks"),
            ReentrantFree => "reentrant mutex".to_owned(),
            UpgradableFree => "upgradable read lock".to_owned(),
            NotifyFree => "condition variable, notify nobody".to_owned(),
            ManualEventFree => "manual-reset event, set and wait".to_owned(),
            OnceFree => "once, when done".to_owned(),
            CellFree => "once-cell, get when set".to_owned(),
            OneshotFree => "oneshot, send and receive".to_owned(),
            BroadcastFree => "broadcast, send and receive".to_owned(),
            WatchFree => "watch, send and receive".to_owned(),
            SelectFree => "select of two, one ready".to_owned(),
            BarrierFree => "barrier of one".to_owned(),
            WaitGroupFree => "wait group of one".to_owned(),
            CountdownFree => "countdown of one".to_owned(),
        }
    }

    fn size(self) -> Size {
        match self {
            MutexTiny(tasks) => Size::Filling { at_least: BRIEF, operations: SHARE * u64::from(tasks) },
            MutexOverYield(tasks) => {
                Size::Filling { at_least: CROWDED, operations: SHARE * u64::from(tasks) }
            }
            MutexApart => Size::Filling { at_least: BRIEF, operations: 2 * SHARE },
            Meet(_) | Wake(_) => Size::Filling { at_least: CROWDED, operations: SHARE * CROWD },
            ReentrantTiny | ReadWriteTiny | SemaphoreTiny => {
                Size::Filling { at_least: BRIEF, operations: SHARE * CONTENDERS }
            }
            ReentrantOverYield => Size::Filling { at_least: CROWDED, operations: SHARE * LOCKERS },
            ReadWrite => Size::Filling { at_least: CROWDED, operations: SHARE * READERS },
            Semaphore => Size::Filling { at_least: CROWDED, operations: SHARE * ACQUIRERS },
            _ => Size::ANY,
        }
    }

    fn targets(self, workers: usize) -> Vec<Target> {
        match workers {
            1 => self.targets_with_one(),
            _ => self.targets_with_more(),
        }
    }
}

impl Question {
    fn targets_with_one(self) -> Vec<Target> {
        let target = match self {
            MutexFree | ReadFree => Target::time(1.05, Bound::Named("parking_lot")),
            MutexOverYield(_) => return vec![Target::time(0.4, Bound::Best), Target::shares(1.1)],
            ReentrantOverYield => Target::shares(1.1),
            PingPong(_) => Target::time(0.4, Bound::Best),
            Event(_) => Target::time(0.3, Bound::Best),
            Condition(_) => Target::time(0.45, Bound::Best),
            Call(_) => Target::time(0.5, Bound::Best),
            Semaphore => Target::time(0.35, Bound::Best),
            Bounded(_) | BoundedEight => Target::time(0.35, Bound::Named("tokio")),
            _ => return Vec::new(),
        };
        vec![target]
    }

    fn targets_with_more(self) -> Vec<Target> {
        let best = Target::time(1.0, Bound::Best);
        match self {
            // Two tasks that are spawned together stay on one worker, where nothing is contended.
            MutexTiny(2) => Vec::new(),
            MutexTiny(_) | MutexApart => {
                vec![Target::time(1.5, Bound::Named("parking_lot")), Target::shares(2.0)]
            }
            PingPong(Place::Apart)
            | Rendezvous(Place::Apart)
            | Event(Place::Apart)
            | Condition(Place::Apart)
            | Call(Place::Apart) => vec![best, Target::time(2.5, Bound::Named("cache lines"))],
            PingPong(_) | Rendezvous(_) | Event(_) | Condition(_) | Call(_) => {
                vec![best, Target::time(1.3, Bound::OneWorker)]
            }
            Bounded(Place::Together) | Unbounded(Place::Together) => {
                vec![best, Target::time(1.3, Bound::OneWorker)]
            }
            _ => vec![best],
        }
    }
}
