//! One suite over all locks of one holder at a time: what each of them promises, in threads, in tasks and between the two.
//!
//! Another lock joins by an `impl Exclusive` and a line of `suite!`.

mod common;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use common::{beside, everywhere, give_way, guarded, in_tasks, pause, runtime};
use fibra_sync::{Mutex, ReentrantMutex, RwLock, Semaphore, SemaphorePermit};

/// A lock of one holder at a time.
trait Exclusive: Send + Sync + 'static {
    type Guard<'a>;
    fn new() -> Self;
    fn lock(&self) -> Self::Guard<'_>;
    fn try_lock(&self) -> Option<Self::Guard<'_>>;
    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>>;
}

impl Exclusive for Mutex<()> {
    type Guard<'a> = fibra_sync::MutexGuard<'a, ()>;

    fn new() -> Self {
        Mutex::new(())
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_lock()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.try_lock_for(timeout)
    }
}

impl Exclusive for ReentrantMutex<()> {
    type Guard<'a> = fibra_sync::ReentrantMutexGuard<'a, ()>;

    fn new() -> Self {
        ReentrantMutex::new(())
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_lock()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.try_lock_for(timeout)
    }
}

/// As one writer at a time.
impl Exclusive for RwLock<()> {
    type Guard<'a> = fibra_sync::RwLockWriteGuard<'a, ()>;

    fn new() -> Self {
        RwLock::new(())
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.write()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_write()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.try_write_for(timeout)
    }
}

/// The other policy; only the type differs.
struct WriterFirst(RwLock<()>);

impl Exclusive for WriterFirst {
    type Guard<'a> = fibra_sync::RwLockWriteGuard<'a, ()>;

    fn new() -> Self {
        WriterFirst(RwLock::writer_first(()))
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.0.write()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.0.try_write()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.0.try_write_for(timeout)
    }
}

/// Of one permit.
impl Exclusive for Semaphore {
    type Guard<'a> = SemaphorePermit<'a>;

    fn new() -> Self {
        Semaphore::new(1)
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.acquire()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_acquire().ok()
    }

    fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.acquire_timeout(timeout)
    }
}

macro_rules! suite {
    ($name:ident, $lock:ty: $($promise:ident)*) => {
        mod $name {
            use super::*;
            $(#[test] fn $promise() { super::$promise::<$lock>() })*
        }
    };
    ($name:ident, $lock:ty) => {
        suite! { $name, $lock:
            one_is_inside_at_a_time
            tasks_and_threads_exclude_each_other
            an_attempt_fails_while_it_is_locked
            a_timed_attempt_gives_up_in_its_time
            a_timed_attempt_takes_what_comes_in_its_time
            an_attempt_of_no_time_takes_a_free_lock
            a_time_beyond_the_clock_is_no_deadline
            everybody_gets_in_who_waits
            it_is_held_over_a_wait
            what_one_wrote_the_next_one_sees
            a_panic_unlocks
            it_is_locked_while_a_thread_ends
            a_cancel_does_not_end_the_wait
            unlocked_and_timed_out_at_once_nobody_is_forgotten
            out_of_time_again_and_again_nobody_is_forgotten
            threads_out_of_time_leave_the_tasks_alone
        }
    };
}

suite!(mutex, Mutex<()>);
suite!(reentrant_mutex, ReentrantMutex<()>);
suite!(rwlock, RwLock<()>);
suite!(rwlock_writer_first, WriterFirst);
// Its wait is a cancellation point, and what it does of that is told elsewhere.
suite! { semaphore, Semaphore:
    one_is_inside_at_a_time
    tasks_and_threads_exclude_each_other
    an_attempt_fails_while_it_is_locked
    a_timed_attempt_gives_up_in_its_time
    a_timed_attempt_takes_what_comes_in_its_time
    an_attempt_of_no_time_takes_a_free_lock
    a_time_beyond_the_clock_is_no_deadline
    everybody_gets_in_who_waits
    it_is_held_over_a_wait
    what_one_wrote_the_next_one_sees
    a_panic_unlocks
    it_is_locked_while_a_thread_ends
    unlocked_and_timed_out_at_once_nobody_is_forgotten
    out_of_time_again_and_again_nobody_is_forgotten
    threads_out_of_time_leave_the_tasks_alone
}

/// A lock, and a count that goes wrong when two are inside.
struct Guarded<L> {
    lock: L,
    count: AtomicU64,
    inside: AtomicUsize,
    begun: AtomicBool,
}

impl<L: Exclusive> Guarded<L> {
    fn new() -> Arc<Self> {
        Arc::new(Guarded {
            lock: L::new(),
            count: AtomicU64::new(0),
            inside: AtomicUsize::new(0),
            begun: AtomicBool::new(false),
        })
    }

    /// One that is inside counts, and others run meanwhile if it says so.
    fn count(&self, linger: bool) {
        assert_eq!(self.inside.fetch_add(1, Relaxed), 0, "alone");
        // No read-modify-write: two at once would lose a count.
        let seen = self.count.load(Relaxed);
        if linger {
            give_way();
        }
        self.count.store(seen + 1, Relaxed);
        assert_eq!(self.inside.fetch_sub(1, Relaxed), 1, "alone");
    }

    fn counted(&self) -> u64 {
        let _guard = self.lock.lock();
        self.count.load(Relaxed)
    }
}

fn one_is_inside_at_a_time<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let sides: Vec<_> = (0..12)
            .map(|side| {
                let shared = Arc::clone(&shared);
                beside(move || {
                    for round in 0..200 {
                        let _guard = shared.lock.lock();
                        shared.count((side + round) % 3 == 0);
                    }
                })
            })
            .collect();
        sides.into_iter().for_each(|side| side.join());
        assert_eq!(shared.counted(), 12 * 200);
    });
}

fn tasks_and_threads_exclude_each_other<L: Exclusive>() {
    guarded(|| {
        for workers in [1, 2] {
            let shared = Guarded::<L>::new();
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || work(&shared, 500))
                })
                .collect();
            runtime(workers).run(|| {
                let tasks: Vec<_> = (0..20)
                    .map(|_| {
                        let shared = Arc::clone(&shared);
                        fibra_runtime::spawn(move || work(&shared, 100))
                    })
                    .collect();
                tasks.into_iter().for_each(|task| task.join().unwrap());
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(shared.counted(), 3 * 500 + 20 * 100);
        }
    });
}

fn work<L: Exclusive>(shared: &Guarded<L>, rounds: usize) {
    for round in 0..rounds {
        let _guard = shared.lock.lock();
        shared.count(round.is_multiple_of(5));
    }
}

fn an_attempt_fails_while_it_is_locked<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        assert!(beside(move || other.lock.try_lock().is_none()).join());
        drop(guard);
        let other = Arc::clone(&shared);
        assert!(beside(move || other.lock.try_lock().is_some()).join());
        assert!(shared.lock.try_lock().is_some());
    });
}

fn a_timed_attempt_gives_up_in_its_time<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        let waited = beside(move || {
            let begin = Instant::now();
            assert!(other.lock.try_lock_for(Duration::from_millis(20)).is_none());
            begin.elapsed()
        });
        assert!(waited.join() >= Duration::from_millis(20));
        drop(guard);
        assert!(shared.lock.try_lock().is_some(), "who gave up has left nothing behind");
    });
}

fn a_timed_attempt_takes_what_comes_in_its_time<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        let side = beside(move || other.lock.try_lock_for(Duration::from_secs(100)).is_some());
        pause();
        drop(guard);
        assert!(side.join());
    });
}

fn an_attempt_of_no_time_takes_a_free_lock<L: Exclusive>() {
    everywhere(|| {
        let lock = L::new();
        assert!(lock.try_lock_for(Duration::ZERO).is_some());
        let shared = Guarded::<L>::new();
        let _guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        assert!(beside(move || other.lock.try_lock_for(Duration::ZERO).is_none()).join());
    });
}

fn a_time_beyond_the_clock_is_no_deadline<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        let side = beside(move || other.lock.try_lock_for(Duration::MAX).is_some());
        pause();
        drop(guard);
        assert!(side.join());
    });
}

fn everybody_gets_in_who_waits<L: Exclusive>() {
    in_tasks(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let tasks: Vec<_> = (0..1000)
            .map(|_| {
                let shared = Arc::clone(&shared);
                fibra_runtime::spawn(move || {
                    let _guard = shared.lock.lock();
                    shared.count(false);
                })
            })
            .collect();
        pause();
        drop(guard);
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(shared.counted(), 1000);
    });
}

fn it_is_held_over_a_wait<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let sides: Vec<_> = (0..4)
            .map(|_| {
                let shared = Arc::clone(&shared);
                beside(move || {
                    let _guard = shared.lock.lock();
                    let seen = shared.count.load(Relaxed);
                    pause();
                    shared.count.store(seen + 1, Relaxed);
                })
            })
            .collect();
        sides.into_iter().for_each(|side| side.join());
        assert_eq!(shared.counted(), 4);
    });
}

fn what_one_wrote_the_next_one_sees<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let twin = Arc::new(AtomicU64::new(0));
        let sides: Vec<_> = (0..4)
            .map(|_| {
                let (shared, twin) = (Arc::clone(&shared), Arc::clone(&twin));
                beside(move || {
                    for _ in 0..300 {
                        let _guard = shared.lock.lock();
                        assert_eq!(shared.count.load(Relaxed), twin.load(Relaxed));
                        shared.count(false);
                        twin.store(shared.count.load(Relaxed), Relaxed);
                    }
                })
            })
            .collect();
        sides.into_iter().for_each(|side| side.join());
    });
}

fn a_panic_unlocks<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let other = Arc::clone(&shared);
        let side = beside(move || {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _guard = other.lock.lock();
                std::panic::resume_unwind(Box::new(7))
            }));
            *caught.map(|(): ()| ()).unwrap_err().downcast::<i32>().unwrap()
        });
        assert_eq!(side.join(), 7);
        drop(shared.lock.lock());
    });
}

/// Runs a closure in the destructors of a thread's locals.
struct AtEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.take().expect("it ends once")();
    }
}

fn it_is_locked_while_a_thread_ends<L: Exclusive>() {
    thread_local! {
        static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
    }
    guarded(|| {
        // What a thread waits with is a local of its own, which is older or younger than the other one.
        for waits_before in [false, true] {
            let shared = Guarded::<L>::new();
            let held = shared.lock.lock();
            let theirs = Arc::clone(&shared);
            let thread = thread::spawn(move || {
                let waits = || assert!(theirs.lock.try_lock_for(Duration::from_millis(1)).is_none());
                if waits_before {
                    waits();
                }
                let ours = Arc::clone(&theirs);
                let at_end = move || {
                    ours.begun.store(true, Relaxed);
                    let _guard = ours.lock.lock();
                    ours.count(true);
                };
                AT_END.set(Some(AtEnd(Some(Box::new(at_end)))));
                waits();
            });
            while !shared.begun.load(Relaxed) {
                thread::yield_now();
            }
            pause();
            drop(held);
            thread.join().unwrap();
            assert_eq!(shared.counted(), 1);
        }
    });
}

fn a_cancel_does_not_end_the_wait<L: Exclusive>() {
    in_tasks(|| {
        let shared = Guarded::<L>::new();
        let guard = shared.lock.lock();
        let other = Arc::clone(&shared);
        let task = fibra_runtime::spawn(move || {
            // Cancelled before this it would not begin at all.
            other.begun.store(true, Relaxed);
            let guard = other.lock.lock();
            other.count(false);
            drop(guard);
            fibra_runtime::sleep(Duration::from_secs(1000));
        });
        while !shared.begun.load(Relaxed) {
            give_way();
        }
        pause();
        task.task().cancel();
        pause();
        assert!(!task.is_finished(), "still waits for the lock");
        drop(guard);
        assert!(task.join().unwrap_err().is_cancelled());
        assert_eq!(shared.counted(), 1, "and had it");
    });
}

fn unlocked_and_timed_out_at_once_nobody_is_forgotten<L: Exclusive>() {
    in_tasks(|| {
        let pairs: Vec<_> = (0..100)
            .map(|_| fibra_runtime::spawn(|| (0..80).filter(|_| unlock_as_it_times_out::<L>()).count()))
            .collect();
        let _taken: usize = pairs.into_iter().map(|pair| pair.join().unwrap()).sum();
    });
}

/// True if the attempt had the lock.
fn unlock_as_it_times_out<L: Exclusive>() -> bool {
    let shared = Guarded::<L>::new();
    let timeout = Duration::from_micros(300);
    let guard = shared.lock.lock();
    let timed = Arc::clone(&shared);
    let attempt = fibra_runtime::spawn(move || {
        let taken = timed.lock.try_lock_for(timeout);
        if taken.is_some() {
            timed.count(true);
        }
        taken.is_some()
    });
    let behind = Arc::clone(&shared);
    let patient = fibra_runtime::spawn(move || {
        let _guard = behind.lock.lock();
        behind.count(true);
    });
    fibra_runtime::sleep(timeout);
    drop(guard);
    let taken = attempt.join().unwrap();
    patient.join().unwrap();
    assert!(shared.lock.try_lock().is_some(), "all have gone");
    assert_eq!(shared.counted(), 1 + u64::from(taken));
    taken
}

fn out_of_time_again_and_again_nobody_is_forgotten<L: Exclusive>() {
    everywhere(|| {
        let shared = Guarded::<L>::new();
        let sides: Vec<_> = (0..6_u64)
            .map(|side| {
                let shared = Arc::clone(&shared);
                beside(move || hurried(&shared, side, 400))
            })
            .collect();
        work(&shared, 400);
        let taken: u64 = sides.into_iter().map(|side| side.join()).sum();
        assert_eq!(shared.counted(), taken + 400);
    });
}

/// Attempts of many lengths; how many had the lock.
fn hurried<L: Exclusive>(shared: &Guarded<L>, side: u64, rounds: u64) -> u64 {
    let taken = (0..rounds).filter(|round| {
        let timeout = Duration::from_nanos((round * 7919 + side * 104_729) % 20_000);
        let guard = shared.lock.try_lock_for(timeout);
        if guard.is_some() {
            shared.count(round.is_multiple_of(4));
        }
        guard.is_some()
    });
    taken.count() as u64
}

fn threads_out_of_time_leave_the_tasks_alone<L: Exclusive>() {
    guarded(|| {
        let shared = Guarded::<L>::new();
        let threads: Vec<_> = (0..2)
            .map(|side| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || hurried(&shared, side, 2000))
            })
            .collect();
        let tasks: u64 = runtime(2).run(|| {
            let patient = {
                let shared = Arc::clone(&shared);
                fibra_runtime::spawn(move || work(&shared, 1000))
            };
            let hurried: Vec<_> = (2..8)
                .map(|side| {
                    let shared = Arc::clone(&shared);
                    fibra_runtime::spawn(move || hurried(&shared, side, 300))
                })
                .collect();
            patient.join().unwrap();
            hurried.into_iter().map(|task| task.join().unwrap()).sum()
        });
        let threads: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(shared.counted(), 1000 + tasks + threads);
    });
}
