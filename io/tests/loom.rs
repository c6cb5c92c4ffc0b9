//! Loom models of this crate: `RUSTFLAGS="--cfg loom" cargo test -p fibra-io --test loom --release`.
//!
//! The readiness word is built here from its own source file, over loom's atomics.
#![cfg(loom)]
#![expect(dead_code, reason = "the models use a part of the word's interface")]

/// What `readiness.rs` imports as `crate::primitive`.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

#[path = "../src/readiness.rs"]
mod readiness;

use loom::sync::Arc;
use primitive::{AtomicU64, Ordering};
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
