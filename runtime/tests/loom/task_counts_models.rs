//! The end of a runtime: as many tasks ended as were spawned.

use std::sync::Arc;

use loom::thread;

use crate::ending::Ending;
use crate::gate::assert_no_wake_is_left;
use crate::primitive::{Ordering, check, check_bounded, fence};
use crate::task_counts::{Counts, alive, finished, spawned};
use crate::wait::strategy::UntilRaised;
use crate::wait::{self, Waking, over};

/// In which order the sums are taken.
#[derive(Clone, Copy)]
enum Sum {
    FinishedFirst,
    SpawnedFirst,
}

struct Runtime {
    workers: [Counts; 2],
    outside: Counts,
    ending: Ending,
}

impl Runtime {
    fn new() -> Arc<Self> {
        let runtime =
            Runtime { workers: Default::default(), outside: Counts::default(), ending: Ending::new() };
        assert!(runtime.is_quiescent(Sum::FinishedFirst));
        assert!(!runtime.ending.has_begun());
        assert!(runtime.ending.next_waiter().is_none());
        Arc::new(runtime)
    }

    fn is_quiescent(&self, sum: Sum) -> bool {
        let counts = self.workers.iter().chain([&self.outside]);
        match sum {
            Sum::FinishedFirst => alive(counts) == 0,
            Sum::SpawnedFirst => {
                fence(Ordering::SeqCst);
                let spawned = spawned(counts.clone());
                fence(Ordering::SeqCst);
                spawned == finished(counts)
            }
        }
    }

    /// As `Shared::end_if_quiescent`, by a worker that has begun the end.
    fn end_if_quiescent(&self) {
        if self.is_quiescent(Sum::FinishedFirst) && self.ending.end() {
            while let Some(wake) = self.ending.next_waiter() {
                wake.wake();
            }
        }
    }

    fn spawn<R: 'static>(self: &Arc<Self>, f: impl FnOnce(&Runtime) -> R + 'static) -> thread::JoinHandle<R> {
        let runtime = Arc::clone(self);
        thread::spawn(move || f(&runtime))
    }
}

/// Finds: two workers end the last two tasks at one moment, and each takes the task of its peer for alive.
#[test]
fn of_two_last_tasks_one_sees_the_end() {
    check(|| {
        let runtime = Runtime::new();
        runtime.workers[0].spawn();
        runtime.workers[0].spawn();
        let other = runtime.spawn(|runtime| {
            runtime.workers[1].finish();
            runtime.is_quiescent(Sum::FinishedFirst)
        });
        runtime.workers[0].finish();
        let here = runtime.is_quiescent(Sum::FinishedFirst);
        assert!(other.join().unwrap() || here, "no worker saw the end");
    });
}

/// Finds: a task that spawns another one before it ends is counted as ended, and its child not as spawned.
#[test]
fn a_living_child_is_never_missed() {
    check(|| a_child_with(Sum::FinishedFirst));
}

/// Shows that the model finds it: with the sums the other way about, the child falls between the two.
#[test]
#[should_panic(expected = "the child was missed")]
fn the_sums_the_other_way_about_miss_a_child() {
    check(|| a_child_with(Sum::SpawnedFirst));
}

fn a_child_with(sum: Sum) {
    let runtime = Runtime::new();
    runtime.workers[0].spawn();
    let ends = runtime.spawn(move |runtime| runtime.is_quiescent(sum));
    // The child is spawned, and outlives the model.
    runtime.workers[1].spawn();
    runtime.workers[1].finish();
    assert!(!ends.join().unwrap(), "the child was missed");
}

/// Finds: a thread from outside spawns just as the end begins; it is admitted, and not counted.
#[test]
fn admitted_tasks_are_counted() {
    check(|| {
        let runtime = Runtime::new();
        let spawner = runtime.spawn(|runtime| {
            let admitted = runtime.ending.admit(&runtime.outside);
            if !admitted {
                runtime.outside.finish_outside();
            }
            admitted
        });
        assert!(runtime.ending.begin());
        let quiescent = runtime.is_quiescent(Sum::FinishedFirst);
        let admitted = spawner.join().unwrap();
        assert!(!(admitted && quiescent), "admitted, and not counted");
        assert_eq!(runtime.is_quiescent(Sum::FinishedFirst), !admitted);
    });
}

/// Finds: a waiter for the end that goes to sleep as the end comes, and sleeps on, or is woken in its next sleep; also at its
/// deadline.
#[test]
fn waiter_for_the_end_is_told_of_it() {
    for hurried in [false, true] {
        let model = move || {
            let runtime = Runtime::new();
            assert!(runtime.ending.begin());
            runtime.workers[0].spawn();
            let worker = runtime.spawn(|runtime| {
                runtime.workers[0].finish();
                runtime.end_if_quiescent();
            });
            let why = wait::sleep(&UntilRaised(&runtime.ending.flag()), hurried.then(over));
            assert!(hurried || runtime.ending.has_ended());
            assert!(why == Waking::Notified || hurried);
            assert_no_wake_is_left();
            worker.join().unwrap();
            assert!(runtime.ending.has_ended());
        };
        check_bounded(3, model);
    }
}
