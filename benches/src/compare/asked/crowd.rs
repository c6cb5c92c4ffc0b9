//! The questions about many tasks that want one thing.

use std::hint::black_box;
use std::ops::DerefMut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use super::super::{Held, Job, Tasks, boxed};
use super::pairs::Event;
use super::{Asked, task};
use crate::compare::primitives::question::READS;
use crate::compare::primitives::shares::shared;
use crate::compare::question::Answer;

/// A mutex around a count.
pub(in crate::compare) trait Lock: Send + Sync + 'static {
    const IS_REENTRANT: bool = false;

    type Guard<'a>: Held
    where
        Self: 'a;

    fn new() -> Self;
    fn lock(&self) -> later!(Self::Guard<'_>);

    /// Counts one more, and returns the count.
    fn count(guard: &mut Self::Guard<'_>) -> u64;
}

/// A read-write lock around a count.
pub(in crate::compare) trait ReadLock: Send + Sync + 'static {
    type Read<'a>: Held
    where
        Self: 'a;
    type Write<'a>: DerefMut<Target = u64> + Held
    where
        Self: 'a;

    fn new() -> Self;
    fn read(&self) -> later!(Self::Read<'_>);
    fn write(&self) -> later!(Self::Write<'_>);
}

/// A semaphore.
pub(in crate::compare) trait Permits: Send + Sync + 'static {
    type Permit<'a>: Held
    where
        Self: 'a;

    fn new(permits: usize) -> Self;
    fn acquire(&self) -> later!(Self::Permit<'_>);
}

/// Times what one task does over and over with what it made.
macro_rules! repeat {
    ($operations:ident, $new:expr, |$thing:ident| $operation:expr) => {
        task(job!({
            let thing = $new;
            timed!($operations, |_| {
                let $thing = black_box(&thing);
                $operation
            })
        }))
    };
}

pub(super) fn lock_freely<L: Lock>(operations: u64) -> Asked {
    repeat!(operations, L::new(), |lock| _ = L::count(&mut wait!(lock.lock())))
}

pub(super) fn read_freely<L: ReadLock>(operations: u64) -> Asked {
    repeat!(operations, L::new(), |lock| drop(black_box(wait!(lock.read()))))
}

pub(super) fn write_freely<L: ReadLock>(operations: u64) -> Asked {
    repeat!(operations, L::new(), |lock| *wait!(lock.write()) += 1)
}

pub(super) fn acquire_freely<P: Permits>(operations: u64) -> Asked {
    repeat!(operations, P::new(1), |semaphore| drop(wait!(semaphore.acquire())))
}

/// So many tasks lock, count and unlock, and yield in between or do not, until all of them together have done
/// so `operations` times.
pub(super) fn lock<T: Tasks, L: Lock, const YIELDS: bool>(tasks: u64, operations: u64) -> Asked {
    let lock = Arc::new(L::new());
    let asking = move || {
        let lock = Arc::clone(&lock);
        job!({
            let mut share = 0;
            loop {
                let mut guard = wait!(lock.lock());
                let count = L::count(&mut guard);
                if YIELDS {
                    wait!(T::yield_now());
                }
                drop(guard);
                if count > operations {
                    return share;
                }
                share += 1;
            }
        })
    };
    task(lead::<T, _>(tasks, operations, asking, job!({})))
}

/// So many tasks lock for reading, and every so often for writing, and unlock until all of them together have
/// done so `operations` times. The number of each turn comes from a count that all of them want, too.
pub(super) fn share<T: Tasks, L: ReadLock, const YIELDS: bool>(tasks: u64, operations: u64) -> Asked {
    let shared = Arc::new((L::new(), AtomicU64::new(0)));
    let asking = move || {
        let shared = Arc::clone(&shared);
        job!({
            let (lock, count) = &*shared;
            for share in 0.. {
                let number = count.fetch_add(1, Relaxed);
                if number % READS == 0 {
                    let mut count = wait!(lock.write());
                    *count += 1;
                    if YIELDS {
                        wait!(T::yield_now());
                    }
                } else {
                    let _count = wait!(lock.read());
                    if YIELDS {
                        wait!(T::yield_now());
                    }
                }
                if number >= operations {
                    return share;
                }
            }
            unreachable!("one of these is the last")
        })
    };
    task(lead::<T, _>(tasks, operations, asking, job!({})))
}

/// So many tasks acquire, count and release until all of them together have done so `operations` times.
pub(super) fn acquire<T: Tasks, P: Permits, const YIELDS: bool>(
    permits: usize,
    tasks: u64,
    operations: u64,
) -> Asked {
    let shared = Arc::new((P::new(permits), AtomicU64::new(0)));
    let asking = move || {
        let shared = Arc::clone(&shared);
        job!({
            let (semaphore, count) = &*shared;
            for share in 0.. {
                let _permit = wait!(semaphore.acquire());
                if YIELDS {
                    wait!(T::yield_now());
                }
                if count.fetch_add(1, Relaxed) >= operations {
                    return share;
                }
            }
            unreachable!("one of these is the last")
        })
    };
    task(lead::<T, _>(tasks, operations, asking, job!({})))
}

/// Two tasks lock, count and unlock until both together have done so `operations` times.
pub(super) fn lock_as_a_pair<L: Lock>(operations: u64) -> Asked {
    let (lock, shares) = (Arc::new(L::new()), Arc::new([const { AtomicU64::new(0) }; 2]));
    let side = |number: usize| {
        let (lock, shares) = (Arc::clone(&lock), Arc::clone(&shares));
        job!({
            let begin = Instant::now();
            let mut share = 0;
            while L::count(&mut wait!(lock.lock())) <= operations {
                share += 1;
            }
            shares[number].store(share, Relaxed);
            begin.elapsed()
        })
    };
    let (first, second) = (side(0), side(1));
    let finish = move |elapsed| shared(elapsed, &*shares, operations);
    Asked::Pair(boxed(first), boxed(job!({ _ = run!(second) })), Box::new(finish))
}

/// An event is set until it has been waited for `operations` times; the task that was woken sets another one.
pub(super) fn set<T: Tasks, E: Event>(tasks: u64, operations: u64) -> Asked {
    let events = Arc::new((E::new(), E::new(), AtomicBool::new(false)));
    let crowd = Arc::clone(&events);
    let asking = move || {
        let crowd = Arc::clone(&crowd);
        job!({
            let (asked, answered, is_over) = &*crowd;
            for share in 0.. {
                wait!(asked.wait());
                // Relaxed: a task that has waited sees what was before.
                if is_over.load(Relaxed) {
                    asked.set();
                    return share;
                }
                answered.set();
            }
            unreachable!("one of these is the last")
        })
    };
    let part = job!({
        let (asked, answered, is_over) = &*events;
        for _ in 0..operations {
            asked.set();
            wait!(answered.wait());
        }
        is_over.store(true, Relaxed);
        asked.set();
    });
    task(lead::<T, _>(tasks, operations, asking, part))
}

/// Starts so many tasks, has each ask until it is told its share, and meanwhile does the part of the calling
/// task.
pub(in crate::compare) fn lead<T: Tasks, F: Job<u64>>(
    tasks: u64,
    operations: u64,
    asking: impl Fn() -> F + Send + 'static,
    part: impl Job<()>,
) -> impl Job<Answer> {
    job!({
        let all = Arc::new(Barrier::new(tasks as usize + 1));
        let shares: Arc<[AtomicU64]> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
        let task = |number: usize| {
            let (all, shares, asking) = (Arc::clone(&all), Arc::clone(&shares), asking());
            job!({
                T::begin_together(&all);
                shares[number].store(run!(asking), Relaxed);
            })
        };
        let handles: Vec<_> = (0..tasks as usize).map(task).map(T::spawn).collect();
        // Before: threads may be done with much until this one goes on.
        let begin = Instant::now();
        T::begin_together(&all);
        run!(part);
        join_all!(T, handles);
        shared(begin.elapsed(), &shares, operations)
    })
}
