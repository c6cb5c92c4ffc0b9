//! Many tasks that want the same thing.

use std::future::ready;
use std::hint::black_box;
use std::ops::DerefMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::super::crowd::{READS, shared};
use super::{Asked, pair, task};
use crate::compare::question::Answer;
use crate::compare::worlds::{Awaiting, Signal};

/// A mutex around a count.
pub(super) trait Lock: Send + Sync + 'static {
    type Guard<'a>: DerefMut<Target = u64> + Send
    where
        Self: 'a;

    fn new() -> Self;
    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send;
}

/// A read-write lock around a count.
pub(super) trait ReadLock: Send + Sync + 'static {
    type Read<'a>: Send
    where
        Self: 'a;
    type Write<'a>: DerefMut<Target = u64> + Send
    where
        Self: 'a;

    fn new() -> Self;
    fn read(&self) -> impl Future<Output = Self::Read<'_>> + Send;
    fn write(&self) -> impl Future<Output = Self::Write<'_>> + Send;
}

/// A semaphore.
pub(super) trait Permits: Send + Sync + 'static {
    type Permit<'a>: Send
    where
        Self: 'a;

    fn new(permits: usize) -> Self;
    fn acquire(&self) -> impl Future<Output = Self::Permit<'_>> + Send;
}

/// What so many tasks meet at.
pub(super) trait Meeting: Send + Sync + 'static {
    fn of(tasks: usize) -> Self;
    fn meet(&self) -> impl Future<Output = ()> + Send;
}

pub(super) fn lock_freely<L: Lock>(operations: u64) -> Asked {
    task(async move {
        let lock = L::new();
        let begin = Instant::now();
        for _ in 0..operations {
            *black_box(&lock).lock().await += 1;
        }
        begin.elapsed()
    })
}

pub(super) fn read_freely<L: ReadLock>(operations: u64) -> Asked {
    task(async move {
        let lock = L::new();
        let begin = Instant::now();
        for _ in 0..operations {
            black_box(black_box(&lock).read().await);
        }
        begin.elapsed()
    })
}

pub(super) fn write_freely<L: ReadLock>(operations: u64) -> Asked {
    task(async move {
        let lock = L::new();
        let begin = Instant::now();
        for _ in 0..operations {
            *black_box(&lock).write().await += 1;
        }
        begin.elapsed()
    })
}

pub(super) fn acquire_freely<P: Permits>(operations: u64) -> Asked {
    task(async move {
        let semaphore = P::new(1);
        let begin = Instant::now();
        for _ in 0..operations {
            drop(black_box(&semaphore).acquire().await);
        }
        begin.elapsed()
    })
}

pub(super) fn lock_over_yields<T: Awaiting, L: Lock>(tasks: u64, operations: u64) -> Asked {
    lock::<T, L, _>(tasks, operations, T::yield_now)
}

pub(super) fn lock_briefly<T: Awaiting, L: Lock>(tasks: u64, operations: u64) -> Asked {
    lock::<T, L, _>(tasks, operations, || ready(()))
}

fn lock<T: Awaiting, L: Lock, F: Future<Output = ()> + Send>(
    tasks: u64,
    operations: u64,
    meanwhile: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Asked {
    let lock = Arc::new(L::new());
    let asking = move || {
        let (lock, meanwhile) = (Arc::clone(&lock), meanwhile.clone());
        async move {
            for share in 0.. {
                let mut count = lock.lock().await;
                *count += 1;
                meanwhile().await;
                if *count > operations {
                    return share;
                }
            }
            unreachable!("one of these is the last")
        }
    };
    task(serve::<T, _>(tasks, operations, asking))
}

pub(super) fn share_over_yields<T: Awaiting, L: ReadLock>(tasks: u64, operations: u64) -> Asked {
    share::<T, L, _>(tasks, operations, T::yield_now)
}

pub(super) fn share_briefly<T: Awaiting, L: ReadLock>(tasks: u64, operations: u64) -> Asked {
    share::<T, L, _>(tasks, operations, || ready(()))
}

fn share<T: Awaiting, L: ReadLock, F: Future<Output = ()> + Send>(
    tasks: u64,
    operations: u64,
    meanwhile: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Asked {
    let shared = Arc::new((L::new(), AtomicU64::new(0)));
    let asking = move || {
        let (shared, meanwhile) = (Arc::clone(&shared), meanwhile.clone());
        async move {
            let (lock, count) = &*shared;
            for share in 0.. {
                let number = count.fetch_add(1, Relaxed);
                if number % READS == 0 {
                    let mut count = lock.write().await;
                    *count += 1;
                    meanwhile().await;
                } else {
                    let _count = lock.read().await;
                    meanwhile().await;
                }
                if number >= operations {
                    return share;
                }
            }
            unreachable!("one of these is the last")
        }
    };
    task(serve::<T, _>(tasks, operations, asking))
}

pub(super) fn acquire_over_yields<T: Awaiting, P: Permits>(
    permits: usize,
    tasks: u64,
    operations: u64,
) -> Asked {
    acquire::<T, P, _>(permits, tasks, operations, T::yield_now)
}

pub(super) fn acquire_briefly<T: Awaiting, P: Permits>(permits: usize, tasks: u64, operations: u64) -> Asked {
    acquire::<T, P, _>(permits, tasks, operations, || ready(()))
}

fn acquire<T: Awaiting, P: Permits, F: Future<Output = ()> + Send>(
    permits: usize,
    tasks: u64,
    operations: u64,
    meanwhile: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Asked {
    let shared = Arc::new((P::new(permits), AtomicU64::new(0)));
    let asking = move || {
        let (shared, meanwhile) = (Arc::clone(&shared), meanwhile.clone());
        async move {
            let (semaphore, count) = &*shared;
            for share in 0.. {
                let _permit = semaphore.acquire().await;
                meanwhile().await;
                if count.fetch_add(1, Relaxed) >= operations {
                    return share;
                }
            }
            unreachable!("one of these is the last")
        }
    };
    task(serve::<T, _>(tasks, operations, asking))
}

/// Two tasks lock, count and unlock until both together have done so `operations` times.
pub(super) fn lock_as_a_pair<L: Lock>(operations: u64) -> Asked {
    let lock = Arc::new(L::new());
    let side = || {
        let lock = Arc::clone(&lock);
        async move {
            let begin = Instant::now();
            loop {
                let mut count = lock.lock().await;
                *count += 1;
                if *count > operations {
                    return begin.elapsed();
                }
            }
        }
    };
    let (first, second) = (side(), side());
    pair(first, async move { _ = second.await })
}

/// So many tasks meet until all of them together have come `operations` times.
pub(super) fn meet<T: Awaiting, M: Meeting>(tasks: u64, operations: u64) -> Asked {
    let (rounds, meeting) = (operations.div_ceil(tasks), Arc::new(M::of(tasks as usize)));
    task(async move {
        let party = || {
            let meeting = Arc::clone(&meeting);
            async move {
                for _ in 0..rounds {
                    meeting.meet().await;
                }
            }
        };
        let handles: Vec<_> = (0..tasks).map(|_| T::spawn(party())).collect();
        join_all::<T>(handles).await
    })
}

/// A signal is set until it has been waited for `operations` times; who was woken sets another one.
pub(super) fn signal<T: Awaiting>(tasks: u64, operations: u64) -> Asked {
    let signals = Arc::new((T::Signal::default(), T::Signal::default(), AtomicBool::new(false)));
    let crowd = Arc::clone(&signals);
    let asking = move || {
        let crowd = Arc::clone(&crowd);
        async move {
            let (asked, answered, is_over) = &*crowd;
            for share in 0.. {
                asked.wait().await;
                // Relaxed: who has waited sees what was before.
                if is_over.load(Relaxed) {
                    asked.set();
                    return share;
                }
                answered.set();
            }
            unreachable!("one of these is the last")
        }
    };
    task(lead::<T, _>(tasks, operations, asking, async move {
        let (asked, answered, is_over) = &*signals;
        for _ in 0..operations {
            asked.set();
            answered.wait().await;
        }
        is_over.store(true, Relaxed);
        asked.set();
    }))
}

/// Starts so many tasks, and has each ask to be served until it ends with its share.
async fn serve<T: Awaiting, F: Future<Output = u64> + Send + 'static>(
    tasks: u64,
    operations: u64,
    asking: impl Fn() -> F + Send,
) -> Answer {
    lead::<T, F>(tasks, operations, asking, ready(())).await
}

/// The same, and meanwhile this task does its own part.
async fn lead<T: Awaiting, F: Future<Output = u64> + Send + 'static>(
    tasks: u64,
    operations: u64,
    asking: impl Fn() -> F + Send,
    part: impl Future<Output = ()> + Send,
) -> Answer {
    let shares: Arc<[AtomicU64]> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
    let task = |number: usize| {
        let (shares, asking) = (Arc::clone(&shares), asking());
        async move { shares[number].store(asking.await, Relaxed) }
    };
    let handles: Vec<_> = (0..tasks as usize).map(|number| T::spawn(task(number))).collect();
    let begin = Instant::now();
    part.await;
    join_all::<T>(handles).await;
    shared(begin.elapsed(), &shares, operations)
}

async fn join_all<T: Awaiting>(handles: Vec<T::Handle<()>>) -> Duration {
    let begin = Instant::now();
    for handle in handles {
        T::join(handle).await;
    }
    begin.elapsed()
}
