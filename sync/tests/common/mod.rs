//! What the tests of the primitives share: each promise is kept in plain threads, in the tasks of one worker, and in the
//! tasks of several, by the same code.
#![allow(
    dead_code,
    unused_imports,
    clippy::allow_attributes,
    reason = "each test binary uses what it needs; an expectation would fail in the one that uses all"
)]

#[path = "../../../runtime/tests/common/rounds.rs"]
mod rounds;
#[path = "../../../runtime/tests/common/beside.rs"]
mod sides;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fibra_runtime::{Runtime, wait};

pub(crate) use rounds::{ENOUGH, rounds};
pub(crate) use sides::hang::hang_guard;
pub(crate) use sides::{Side, beside, beside_in_a_thread, guarded, pause};

pub(crate) fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().expect("a runtime")
}

/// Runs `promise` in a plain thread, and in a task of one, of two and of four workers.
pub(crate) fn everywhere(promise: impl Fn() + Send + Sync) {
    guarded(&promise);
    in_tasks(promise);
}

/// Runs `promise` in a task of one, of two and of four workers.
pub(crate) fn in_tasks(promise: impl Fn() + Send + Sync) {
    for workers in [1, 2, 4] {
        guarded(|| runtime(workers).run(&promise));
    }
}

/// Gives `promise` a runtime of one, of two and of four workers, so that threads can do something beside its tasks.
pub(crate) fn beside_runtimes(promise: impl Fn(&Runtime)) {
    for workers in [1, 2, 4] {
        guarded(|| promise(&runtime(workers)));
    }
}

/// So many sides where they are threads, or so many where they are tasks.
pub(crate) fn few_or_many(few: usize, many: usize) -> usize {
    if wait::in_task() { many } else { few }
}

/// Numbers that look random and are the same in each run.
pub(crate) struct Dice(u64);

impl Dice {
    /// Those of a side: each has others.
    pub(crate) fn new(side: u64) -> Self {
        Dice(side << 32 | 0x9e37_79b9)
    }

    pub(crate) fn throw(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Lets others run.
pub(crate) fn give_way() {
    match wait::in_task() {
        true => fibra_runtime::yield_now(),
        false => thread::yield_now(),
    }
}

/// Gives way until `done`.
pub(crate) fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        give_way();
    }
}

/// Brings two sides together, for the `nth` time.
pub(crate) fn meet(came: &AtomicUsize, nth: usize) {
    came.fetch_add(1, Ordering::SeqCst);
    let met = || came.load(Ordering::SeqCst) >= 2 * (nth + 1);
    // Awake if possible, so that both set out at once.
    let spun = (0..1000).any(|_| {
        std::hint::spin_loop();
        met()
    });
    if spun {
        return;
    }
    while !met() {
        give_way();
        // The other one may be on a worker without a processor, which this one would keep to the end of its time slice.
        if !met() {
            thread::yield_now();
        }
    }
}

/// Lets one side wait for each of many things for a short time, and the other one notify of it when about that time is over.
/// A waiter that was not notified by then waits on without a limit. There are rounds of both kinds.
pub(crate) fn in_time_and_late<T: Send + Sync + 'static>(
    make: fn() -> T,
    wait: fn(&T, Option<Duration>) -> bool,
    notify: fn(&T),
) {
    const ROUNDS: usize = 1000;
    everywhere(|| {
        let things: Arc<Vec<T>> = Arc::new((0..ROUNDS).map(|_| make()).collect());
        let came = Arc::new(AtomicUsize::new(0));
        let (theirs, comes) = (Arc::clone(&things), Arc::clone(&came));
        let waiter = beside(move || {
            let in_time = theirs.iter().enumerate().filter(|&(round, thing)| {
                meet(&comes, round);
                let in_time = wait(thing, Some(Duration::from_micros(round as u64 * 7 % 30)));
                assert!(in_time || wait(thing, None));
                in_time
            });
            in_time.count()
        });
        for (round, thing) in things.iter().enumerate() {
            meet(&came, round);
            // A thread is woken some fifty microseconds after its deadline. In a quarter of the rounds it is notified at once:
            // to give way for however short a time may take long on a busy machine.
            let moment = Instant::now() + Duration::from_micros((round as u64 * 11 % 120).saturating_sub(30));
            until(|| Instant::now() >= moment);
            notify(thing);
        }
        let in_time = waiter.join();
        assert!((1..ROUNDS).contains(&in_time), "{in_time} of {ROUNDS} in time");
    });
}
