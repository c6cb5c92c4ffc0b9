//! The clock as programs and tests use it: its readings, pauses and moves.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use crate::api::yield_now::yield_now;
use crate::base::clock;
use crate::scheduler::current;
use crate::scheduler::virtual_time::Hold;
use crate::scheduler::worker::Worker;
use crate::tasks::context;

/// Limit of the yields of one step of `advance`: some task may be ready all the time.
const ROUNDS: u32 = 10_000;

/// Returns the time that tasks, timers and deadlines live by.
///
/// In a task of a runtime in virtual time it is that runtime's clock. Elsewhere, also on its blocking
/// pool, it is [`Instant::now`].
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::time::{Duration, advance, now};
/// fibra::Runtime::builder().start_paused(true).run(|| {
///     let begin = now();
///     assert_eq!(now(), begin, "the clock stands");
///     advance(Duration::from_secs(5));
///     assert!(now() >= begin + Duration::from_secs(5));
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn now() -> Instant {
    clock::now()
}

/// Pauses the clock of the runtime: from now on it is [virtual](crate::time#virtual-time).
///
/// Does nothing if it is paused.
///
/// # Panics
/// Panics unless it is called in a task of a runtime with one worker.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::time::{Duration, now, pause, resume, sleep};
/// fibra::Runtime::builder().workers(1).run(|| {
///     pause();
///     let begin = now();
///     sleep(Duration::from_secs(3600));
///     resume();
///     assert!(now() - begin >= Duration::from_secs(3600), "it never goes back");
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn pause() {
    check_task("pause");
    if !clock::is_paused() {
        clock::pause();
    }
}

/// Lets the clock go on with that of the machine, from where it is.
///
/// Does nothing if it is not paused.
///
/// # Panics
/// As [`pause`], and in a simulation, whose clock is virtual to its end.
#[track_caller]
pub fn resume() {
    check_task("resume");
    refuse_in_simulation("resume");
    clock::resume();
}

/// Moves the paused clock forward by `duration`, rounded up to the resolution of timers, 16 µs.
///
/// The timers on the way fire in their order, and in a simulation what is under way arrives. Before each
/// move, and before it returns, all tasks run until they sleep. It moves the clock also where it would
/// stand: while time is [held](hold), and while tasks wait for the system. A task that is always ready is
/// given ten thousand runs before each move.
///
/// # Cancellation
/// A cancellation point. The clock may have moved in part then.
///
/// # Panics
/// As [`pause`], and if the clock is not paused, or has no time that far ahead.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::time::{Duration, advance, sleep};
/// fibra::Runtime::builder().start_paused(true).run(|| {
///     let sleeper = fibra::spawn(|| sleep(Duration::from_secs(60)));
///     advance(Duration::from_secs(59));
///     assert!(!sleeper.is_finished());
///     advance(Duration::from_secs(1));
///     assert!(sleeper.is_finished());
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn advance(duration: Duration) {
    check_task("advance");
    assert!(clock::is_paused(), "`time::advance` moves a paused clock only: call `time::pause` first");
    let end = clock::now().checked_add(duration);
    let Some(end) = end.and_then(|end| with_worker(|worker| worker.firing_time(end))) else {
        panic!("the clock cannot be advanced by {duration:?}: it has no such time");
    };
    let _settling = Settling::enter();
    loop {
        run_others();
        let next = with_worker(|worker| worker.next_event()).filter(|at| *at <= end).unwrap_or(end);
        with_worker(|worker| worker.move_clock(next));
        if next == end {
            return run_others();
        }
    }
}

/// Counts the task among those that are ready only to see the others sleep.
struct Settling(());

impl Settling {
    fn enter() -> Self {
        with_worker(|worker| worker.settling.set(worker.settling.get() + 1));
        Settling(())
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        with_worker(|worker| worker.settling.set(worker.settling.get() - 1));
    }
}

/// Runs all other tasks until they sleep, or have been ready too often.
fn run_others() {
    (0..ROUNDS).any(|_| yields_to_none());
}

/// Lets all other ready tasks run. Returns true if all of them sleep then.
fn yields_to_none() -> bool {
    yield_now();
    with_worker(Worker::is_settled)
}

/// Waits until all other tasks of the runtime sleep.
///
/// A task that waits for a socket or for the blocking pool sleeps as well, and so does one in another `settle`. The clock
/// need not be paused. Does not return while some other task is ready all the time.
///
/// # Cancellation
/// A cancellation point.
///
/// # Panics
/// As [`pause`].
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// static DONE: AtomicBool = AtomicBool::new(false);
/// fibra::Runtime::builder().start_paused(true).run(|| {
///     fibra::spawn(|| {
///         (0..100).for_each(|_| fibra::yield_now());
///         DONE.store(true, Ordering::Relaxed);
///     });
///     fibra::time::settle();
///     assert!(DONE.load(Ordering::Relaxed));
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn settle() {
    check_task("settle");
    let _settling = Settling::enter();
    while !yields_to_none() {}
}

/// Keeps virtual time where it is until the guard is dropped.
///
/// For a program that waits for something that the runtime does not know of, such as a message of a
/// plain thread. Time that is held moves only by [`advance`], and by a timer whose whole time passes on
/// the machine's clock as well. It does nothing in a runtime that is not in virtual time.
///
/// # Panics
/// Panics on a thread that belongs to no runtime, and in a simulation: nothing comes to it from outside.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::time::{Duration, hold, now, timeout};
/// fibra::Runtime::builder().start_paused(true).run(|| {
///     let begin = now();
///     let held = hold();
///     let task = fibra::task::current();
///     let thread = std::thread::spawn(move || {
///         std::thread::sleep(Duration::from_millis(5));
///         task.unpark();
///         drop(held);
///     });
///     timeout(Duration::from_secs(3600), fibra::task::park).expect("the thread comes first");
///     assert_eq!(now(), begin);
///     thread.join().unwrap();
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn hold() -> Hold {
    let shared = current::runtime().expect("`time::hold` needs a thread that belongs to a runtime");
    refuse_in_simulation("hold");
    shared.virtual_time.hold()
}

/// Keeps virtual time as [`hold`] does, if the thread belongs to a runtime.
#[doc(hidden)]
pub fn try_hold() -> Option<Hold> {
    let shared = current::runtime().filter(|shared| !shared.is_simulated())?;
    Some(shared.virtual_time.hold())
}

/// Panics unless the caller is a task whose runtime may have a virtual clock.
#[track_caller]
fn check_task(name: &str) {
    let workers = context::task().and(current::runtime()).map(|shared| shared.blocks.len());
    match workers {
        Some(1) => {}
        Some(workers) => {
            panic!("`time::{name}` needs a runtime with one worker, and this one has {workers}")
        }
        None => panic!("`time::{name}` was called outside a task"),
    }
}

/// Panics in a simulation: it would wait for real then, where its packets and its deadlocks are in virtual time.
#[track_caller]
fn refuse_in_simulation(name: &str) {
    let is_simulated = current::runtime().is_some_and(|shared| shared.is_simulated());
    assert!(
        !is_simulated,
        "`time::{name}` has no place in a simulation, which is in virtual time to its end"
    );
}

/// Runs `f`, which does not suspend, with the worker of the calling task.
fn with_worker<R>(f: impl FnOnce(&Worker) -> R) -> R {
    current::with_worker(f).expect("a task runs on a worker")
}
