//! What is asked, and what fibra means to reach.

use std::time::Duration;

use crate::comparison::{self, Target};

use Question::*;

/// How many slots a bounded channel has, but for the one of a ping-pong.
pub(super) const SLOTS: usize = 128;

/// How many permits the semaphore has.
pub(super) const PERMITS: usize = 3;

/// Where the two tasks of a pair run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Beside each other, as the library likes it best: fibra's on one worker.
    Together,
    /// Each on a worker of its own, and each worker on a processor of its own.
    Apart,
}

/// One kind of operation. Ping-pongs count there and back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// Lock and unlock of a mutex that nobody else wants.
    MutexFree,
    /// Lock, yield, unlock, where so many tasks want the mutex.
    MutexOverYield(u16),
    /// Lock, count, unlock, where so many tasks want the mutex.
    MutexTiny(u16),
    /// Lock and unlock for reading, where nobody writes.
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
    /// Acquire, yield, release, where a thousand tasks want one of three permits.
    Semaphore,
}

const ONE_WORKER: [Question; 14] = [
    MutexFree,
    ReadFree,
    MutexOverYield(2),
    MutexOverYield(64),
    MutexOverYield(1000),
    PingPong(Place::Together),
    Rendezvous(Place::Together),
    Event(Place::Together),
    Condition(Place::Together),
    Call(Place::Together),
    Bounded(Place::Together),
    BoundedEight,
    Unbounded(Place::Together),
    Semaphore,
];

const TWO_WORKERS: [Question; 17] = [
    PingPong(Place::Together),
    Rendezvous(Place::Together),
    Event(Place::Together),
    Condition(Place::Together),
    Call(Place::Together),
    Bounded(Place::Together),
    Unbounded(Place::Together),
    PingPong(Place::Apart),
    Rendezvous(Place::Apart),
    Event(Place::Apart),
    Condition(Place::Apart),
    Call(Place::Apart),
    Bounded(Place::Apart),
    Unbounded(Place::Apart),
    MutexTiny(2),
    MutexTiny(8),
    MutexTiny(64),
];

impl Question {
    /// Where the tasks of a pair run; together, where it is about no pair.
    pub(super) fn place(self) -> Place {
        match self {
            PingPong(place) | Rendezvous(place) | Event(place) | Condition(place) | Call(place)
            | Bounded(place) | Unbounded(place) => place,
            _ => Place::Together,
        }
    }
}

impl comparison::Question for Question {
    fn all(workers: usize) -> &'static [Self] {
        match workers {
            1 => &ONE_WORKER,
            _ => &TWO_WORKERS,
        }
    }

    fn name(self) -> &'static str {
        match self {
            MutexFree => "mutex, uncontended",
            MutexOverYield(2) => "mutex over a yield, 2 tasks",
            MutexOverYield(64) => "mutex over a yield, 64 tasks",
            MutexOverYield(_) => "mutex over a yield, 1000 tasks",
            MutexTiny(2) => "mutex, tiny section, 2 tasks",
            MutexTiny(8) => "mutex, tiny section, 8 tasks",
            MutexTiny(_) => "mutex, tiny section, 64 tasks",
            ReadFree => "read lock, uncontended",
            PingPong(Place::Together) => "ping-pong, 1 slot",
            PingPong(Place::Apart) => "ping-pong, 1 slot, apart",
            Rendezvous(Place::Together) => "ping-pong, rendezvous",
            Rendezvous(Place::Apart) => "ping-pong, rendezvous, apart",
            Event(Place::Together) => "ping-pong, event",
            Event(Place::Apart) => "ping-pong, event, apart",
            Condition(Place::Together) => "ping-pong, condition variable",
            Condition(Place::Apart) => "ping-pong, condition variable, apart",
            Call(Place::Together) => "call and oneshot reply",
            Call(Place::Apart) => "call and oneshot reply, apart",
            Bounded(Place::Together) => "128 slots, 1 producer",
            Bounded(Place::Apart) => "128 slots, 1 producer, apart",
            BoundedEight => "128 slots, 8 producers",
            Unbounded(Place::Together) => "unbounded, 1 producer",
            Unbounded(Place::Apart) => "unbounded, 1 producer, apart",
            Semaphore => "semaphore, 3 permits, 1000 tasks",
        }
    }

    fn target(self, workers: usize) -> Option<Target> {
        let at_most = |ratio, of| Some(Target { ratio, of });
        match self {
            MutexFree => at_most(1.05, "parking_lot"),
            ReadFree => None,
            MutexTiny(_) => at_most(2.0, "parking_lot"),
            Bounded(Place::Apart) | Unbounded(Place::Apart) => None,
            PingPong(Place::Apart)
            | Rendezvous(Place::Apart)
            | Event(Place::Apart)
            | Condition(Place::Apart)
            | Call(Place::Apart) => at_most(2.5, "cache lines"),
            _ if workers > 1 => at_most(1.0, ""),
            Bounded(_) | BoundedEight => at_most(0.4, "tokio"),
            Unbounded(_) | Call(_) | Rendezvous(_) => None,
            MutexOverYield(_) | PingPong(_) | Event(_) | Condition(_) | Semaphore => at_most(0.5, ""),
        }
    }

    fn measured(self) -> Duration {
        match self {
            // Long samples, so that also threads that take turns by time slices have all had theirs.
            MutexTiny(_) => Duration::from_secs(3),
            _ => Duration::from_millis(900),
        }
    }
}
