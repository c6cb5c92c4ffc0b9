//! Many tasks that want the same thing.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use super::library::Pair;
use crate::compare::question::Answer;
use crate::compare::worlds::Blocking;

/// How often each task has to be served, in the mean, and how long all of it has to take, until the shares of all tell
/// anything. Threads take turns by time slices.
const TELLING: (u64, Duration) = (50, Duration::from_millis(40));

/// One of so many times the lock that most read is locked for writing.
pub(super) const READS: u64 = 8;

/// A mutex around a count.
pub(super) trait Lock: Send + Sync + 'static {
    fn new() -> Self;
    fn with<R>(&self, f: impl FnOnce(&mut u64) -> R) -> R;
}

/// A read-write lock around a count.
pub(super) trait ReadLock: Send + Sync + 'static {
    fn new() -> Self;
    fn read<R>(&self, f: impl FnOnce(&u64) -> R) -> R;
    fn write<R>(&self, f: impl FnOnce(&mut u64) -> R) -> R;
}

/// A semaphore.
pub(super) trait Permits: Send + Sync + 'static {
    fn new(permits: usize) -> Self;
    fn with<R>(&self, f: impl FnOnce() -> R) -> R;
}

pub(super) fn lock_freely<L: Lock>(operations: u64) -> Duration {
    let lock = L::new();
    let begin = Instant::now();
    for _ in 0..operations {
        black_box(&lock).with(|count| *count += 1);
    }
    begin.elapsed()
}

pub(super) fn read_freely<L: ReadLock>(operations: u64) -> Duration {
    let lock = L::new();
    let begin = Instant::now();
    for _ in 0..operations {
        black_box(&lock).read(|count| black_box(*count));
    }
    begin.elapsed()
}

pub(super) fn write_freely<L: ReadLock>(operations: u64) -> Duration {
    let lock = L::new();
    let begin = Instant::now();
    for _ in 0..operations {
        black_box(&lock).write(|count| *count += 1);
    }
    begin.elapsed()
}

pub(super) fn acquire_freely<P: Permits>(operations: u64) -> Duration {
    let semaphore = P::new(1);
    let begin = Instant::now();
    (0..operations).for_each(|_| black_box(&semaphore).with(|| ()));
    begin.elapsed()
}

/// So many tasks lock, yield and unlock until all of them together have done so `operations` times.
pub(super) fn lock_over_yields<T: Blocking, L: Lock>(tasks: u64, operations: u64) -> Answer {
    lock::<T, L>(tasks, operations, T::yield_now)
}

/// So many tasks lock, count and unlock until all of them together have done so `operations` times.
pub(super) fn lock_briefly<T: Blocking, L: Lock>(tasks: u64, operations: u64) -> Answer {
    lock::<T, L>(tasks, operations, || ())
}

fn lock<T: Blocking, L: Lock>(
    tasks: u64,
    operations: u64,
    meanwhile: impl Fn() + Clone + Send + 'static,
) -> Answer {
    let lock = Arc::new(L::new());
    serve::<T>(tasks, operations, move || {
        lock.with(|count| {
            *count += 1;
            meanwhile();
            *count <= operations
        })
    })
}

/// Two tasks lock, count and unlock until both together have done so `operations` times.
pub(super) fn lock_as_a_pair<P: Pair, L: Lock>(operations: u64) -> Answer {
    let (lock, shares) = (Arc::new(L::new()), Arc::new([const { AtomicU64::new(0) }; 2]));
    let side = |number: usize| {
        let (lock, shares) = (Arc::clone(&lock), Arc::clone(&shares));
        move || {
            let begin = Instant::now();
            let mut share = 0;
            while lock.with(|count| {
                *count += 1;
                *count <= operations
            }) {
                share += 1;
            }
            shares[number].store(share, Relaxed);
            begin.elapsed()
        }
    };
    let (first, second) = (side(0), side(1));
    // SAFETY: what lives over a suspension are counts and `Arc`s, which are `Send`.
    let elapsed = unsafe { P::run(first, move || _ = second()) };
    shared(elapsed, &*shares, operations)
}

/// So many tasks lock for reading, and every so often for writing, yield and unlock until all of them together have done so
/// `operations` times.
pub(super) fn share_over_yields<T: Blocking, L: ReadLock>(tasks: u64, operations: u64) -> Answer {
    share::<T, L>(tasks, operations, T::yield_now)
}

/// The same, but without a yield. The number of each turn comes from a count that all of them want, too.
pub(super) fn share_briefly<T: Blocking, L: ReadLock>(tasks: u64, operations: u64) -> Answer {
    share::<T, L>(tasks, operations, || ())
}

fn share<T: Blocking, L: ReadLock>(
    tasks: u64,
    operations: u64,
    meanwhile: impl Fn() + Clone + Send + 'static,
) -> Answer {
    let (lock, count) = (Arc::new(L::new()), Arc::new(AtomicU64::new(0)));
    serve::<T>(tasks, operations, move || {
        let number = count.fetch_add(1, Relaxed);
        match number % READS {
            0 => lock.write(|count| {
                *count += 1;
                meanwhile();
            }),
            _ => lock.read(|count| {
                black_box(*count);
                meanwhile();
            }),
        }
        number < operations
    })
}

/// So many tasks acquire, yield and release until all of them together have done so `operations` times.
pub(super) fn acquire_over_yields<T: Blocking, P: Permits>(
    permits: usize,
    tasks: u64,
    operations: u64,
) -> Answer {
    acquire::<T, P>(permits, tasks, operations, T::yield_now)
}

/// So many tasks acquire, count and release until all of them together have done so `operations` times.
pub(super) fn acquire_briefly<T: Blocking, P: Permits>(
    permits: usize,
    tasks: u64,
    operations: u64,
) -> Answer {
    acquire::<T, P>(permits, tasks, operations, || ())
}

fn acquire<T: Blocking, P: Permits>(
    permits: usize,
    tasks: u64,
    operations: u64,
    meanwhile: impl Fn() + Clone + Send + 'static,
) -> Answer {
    let (semaphore, count) = (Arc::new(P::new(permits)), AtomicU64::new(0));
    let count = Arc::new(count);
    serve::<T>(tasks, operations, move || {
        semaphore.with(|| {
            meanwhile();
            count.fetch_add(1, Relaxed) < operations
        })
    })
}

/// Starts so many tasks, and has each ask to be `served` until it is answered no.
fn serve<T: Blocking>(
    tasks: u64,
    operations: u64,
    served: impl Fn() -> bool + Clone + Send + 'static,
) -> Answer {
    lead::<T>(tasks, operations, served, || ())
}

/// The same, and meanwhile this task does its own part.
pub(super) fn lead<T: Blocking>(
    tasks: u64,
    operations: u64,
    served: impl Fn() -> bool + Clone + Send + 'static,
    part: impl FnOnce(),
) -> Answer {
    let all = Arc::new(Barrier::new(tasks as usize + 1));
    let shares: Arc<[AtomicU64]> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
    let task = |number: usize| {
        let (all, shares, served) = (Arc::clone(&all), Arc::clone(&shares), served.clone());
        move || {
            T::begin_together(&all);
            let mut share = 0;
            while served() {
                share += 1;
            }
            shares[number].store(share, Relaxed);
        }
    };
    // SAFETY: what lives over a suspension are counts and `Arc`s, which are `Send`.
    let handles: Vec<_> = (0..tasks as usize).map(|number| unsafe { T::spawn(task(number)) }).collect();
    // Before: threads may be done with much until this one goes on.
    let begin = Instant::now();
    T::begin_together(&all);
    part();
    handles.into_iter().for_each(T::join);
    shared(begin.elapsed(), &shares, operations)
}

/// The answer of a crowd, with what the luckiest got in proportion to the unluckiest, if that tells anything.
pub(super) fn shared(elapsed: Duration, shares: &[AtomicU64], operations: u64) -> Answer {
    let (each, at_least) = TELLING;
    let shares = shares.iter().map(|share| share.load(Relaxed));
    let spread = (operations >= each * shares.len() as u64 && elapsed >= at_least).then(|| {
        let (least, most) =
            shares.fold((u64::MAX, 0), |(least, most), share| (least.min(share), most.max(share)));
        // Who got nothing counts as one who got it once.
        most as f64 / least.max(1) as f64
    });
    Answer::with_shares(elapsed, spread)
}
