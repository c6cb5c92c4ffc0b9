//! Loom models of this crate: `RUSTFLAGS="--cfg loom" cargo test -p fibra-io --test loom --release`.
//!
//! The readiness word is built here from its own source file, over loom's atomics.
#![cfg(loom)]
#![expect(dead_code, reason = "the models use a part of the word's interface")]

/// What `readiness.rs` imports as `crate::primitive`.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

#[path = "../src/readiness.rs"]
mod readiness;

use loom::sync::{Arc, Mutex};
use primitive::{AtomicBool, AtomicU64, Ordering};
use readiness::{Clearing, Direction, Edge, Readiness};

/// The reader looks, finds nothing and clears, while the reactor hears of data. Hunted: a word left clear with data
/// in the socket and no edge to come.
#[test]
fn a_clear_never_covers_an_edge() {
    loom::model(|| {
        let shared = Arc::new((Readiness::new(), AtomicU64::new(0)));
        let kernel = loom::thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.1.store(1, Ordering::SeqCst);
                shared.0.edge(Edge::new().ready(Direction::Read, true));
            }
        });
        let (word, bytes) = &*shared;
        let seen = word.load();
        let found = bytes.swap(0, Ordering::SeqCst);
        let clearing = (found == 0).then(|| word.blocked(Direction::Read, seen));
        kernel.join().unwrap();
        let there = bytes.load(Ordering::SeqCst) == 1;
        assert!(!there || word.load().is_ready(Direction::Read));
        assert!(clearing != Some(Clearing::Overtaken) || word.load().is_ready(Direction::Read));
    });
}

/// What a writer that is to look again shares with the vigil of its source.
struct Watched {
    word: Readiness,
    is_watched: AtomicBool,
    /// The writer is in the list, and sleeps.
    sleeps: Mutex<bool>,
}

impl Watched {
    /// The round of one who entered earlier.
    fn round(&self) {
        self.is_watched.store(false, Ordering::Relaxed);
        self.word.edge(Edge::new().ready(Direction::Write, true));
        *self.sleeps.lock().unwrap() = false;
    }

    /// Somebody tries to write, finds no room, and does not wait.
    fn try_once(&self) {
        let seen = self.word.load();
        _ = self.word.blocked(Direction::Write, seen);
    }

    fn enter(&self) {
        self.is_watched.swap(true, Ordering::Relaxed);
    }

    /// Goes to sleep unless there is something to try, or the round has gone by that a task relies on. Tells whether it does.
    fn sleep(&self, needs_watch: bool) -> bool {
        let mut sleeps = self.sleeps.lock().unwrap();
        let is_missed = needs_watch && !self.is_watched.load(Ordering::Relaxed);
        *sleeps = !is_missed && !self.word.load().is_ready(Direction::Write);
        *sleeps
    }
}

/// Hunted: a writer that sleeps while its source is in no vigil.
fn model_of_a_vigil(wait: fn(&Watched)) {
    loom::model(move || {
        let (is_watched, sleeps) = (AtomicBool::new(true), Mutex::new(false));
        let shared = Arc::new(Watched { word: Readiness::new(), is_watched, sleeps });
        shared.try_once();
        let others = [Watched::round, Watched::try_once].map(|other| {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || other(&shared))
        });
        wait(&shared);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(!*shared.sleeps.lock().unwrap() || shared.is_watched.load(Ordering::Relaxed));
    });
}

#[test]
fn no_task_sleeps_outside_of_a_vigil() {
    model_of_a_vigil(|shared| {
        shared.enter();
        _ = shared.sleep(true);
    });
}

#[test]
fn no_future_sleeps_outside_of_a_vigil() {
    model_of_a_vigil(|shared| {
        // Only while it is pending.
        if shared.sleep(false) {
            shared.enter();
        }
    });
}
