//! The end of a runtime: as many tasks ended as were spawned.
//!
//! `runtime/shutdown.rs` counts per worker, in words that only that worker writes; the rule is small enough to be
//! repeated here.

use std::sync::Arc;

use loom::thread;

use crate::primitive::{AtomicBool, AtomicU64, Ordering, check, fence};

/// What one worker counts.
struct Counts {
    spawned: AtomicU64,
    finished: AtomicU64,
}

/// In which order the sums are taken.
#[derive(Clone, Copy)]
enum Sum {
    FinishedFirst,
    SpawnedFirst,
}

struct Census {
    workers: [Counts; 2],
    ending: AtomicBool,
    outside: Counts,
}

impl Counts {
    fn new() -> Self {
        Counts { spawned: AtomicU64::new(0), finished: AtomicU64::new(0) }
    }
}

/// As `worker::block::bump`, which needs no read-modify-write since it alone writes; loom explores this one better.
fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Release);
}

impl Census {
    fn new() -> Arc<Self> {
        let census = Census {
            workers: [Counts::new(), Counts::new()],
            ending: AtomicBool::new(false),
            outside: Counts::new(),
        };
        assert!(census.is_quiescent(Sum::FinishedFirst));
        census.ending.load(Ordering::Relaxed);
        Arc::new(census)
    }

    /// As `Shared::is_quiescent`.
    fn is_quiescent(&self, sum: Sum) -> bool {
        let counts = || self.workers.iter().chain([&self.outside]);
        let finished = || counts().map(|counts| counts.finished.load(Ordering::SeqCst)).sum::<u64>();
        let spawned = || counts().map(|counts| counts.spawned.load(Ordering::SeqCst)).sum::<u64>();
        fence(Ordering::SeqCst);
        match sum {
            Sum::FinishedFirst => {
                let finished = finished();
                fence(Ordering::SeqCst);
                finished == spawned()
            }
            Sum::SpawnedFirst => {
                let spawned = spawned();
                fence(Ordering::SeqCst);
                spawned == finished()
            }
        }
    }
}

/// Hunts: two workers end the last two tasks at the same moment, and each takes the other's for alive.
#[test]
fn of_two_last_tasks_one_sees_the_end() {
    check(|| {
        let census = Census::new();
        bump(&census.workers[0].spawned);
        bump(&census.workers[0].spawned);
        let other = {
            let census = Arc::clone(&census);
            thread::spawn(move || {
                bump(&census.workers[1].finished);
                census.is_quiescent(Sum::FinishedFirst)
            })
        };
        bump(&census.workers[0].finished);
        let here = census.is_quiescent(Sum::FinishedFirst);
        assert!(other.join().unwrap() || here, "nobody saw the end");
    });
}

/// Hunts: a task that spawns another one before it ends is counted as ended, and its child not as spawned.
#[test]
fn a_living_child_is_never_missed() {
    check(|| a_child_with(Sum::FinishedFirst));
}

/// Shows that the hunt finds it: with the sums the other way about, the child falls between the two.
#[test]
#[should_panic(expected = "the child was missed")]
fn the_sums_the_other_way_about_miss_a_child() {
    check(|| a_child_with(Sum::SpawnedFirst));
}

fn a_child_with(sum: Sum) {
    let census = Census::new();
    bump(&census.workers[0].spawned);
    let parent = {
        let census = Arc::clone(&census);
        thread::spawn(move || {
            // The child is spawned, and outlives the model.
            bump(&census.workers[1].spawned);
            bump(&census.workers[1].finished);
        })
    };
    assert!(!census.is_quiescent(sum), "the child was missed");
    parent.join().unwrap();
}

/// Hunts: a thread from outside spawns just as the end begins; it is admitted, and not counted.
#[test]
fn who_is_admitted_is_counted() {
    check(|| {
        let census = Census::new();
        let spawner = {
            let census = Arc::clone(&census);
            thread::spawn(move || {
                // As `Shared::admit_outside`.
                census.outside.spawned.fetch_add(1, Ordering::SeqCst);
                let admitted = !census.ending.load(Ordering::SeqCst);
                if !admitted {
                    census.outside.finished.fetch_add(1, Ordering::SeqCst);
                }
                admitted
            })
        };
        census.ending.swap(true, Ordering::SeqCst);
        let quiescent = census.is_quiescent(Sum::FinishedFirst);
        let admitted = spawner.join().unwrap();
        assert!(!(admitted && quiescent), "admitted, and not counted");
        assert_eq!(census.is_quiescent(Sum::FinishedFirst), !admitted);
    });
}
