//! The readiness word alone.

use std::sync::Arc;

use loom::thread;

use crate::primitive::{AtomicU64, Ordering, check};
use crate::readiness::{Clearing, Edge, Readiness};
use crate::sys::Direction;

/// The reader looks, finds nothing and clears, while an edge reports data. Finds: a word left clear with data
/// in the socket and no edge to come.
#[test]
fn a_clear_never_covers_an_edge() {
    check(|| {
        let shared = Arc::new((Readiness::new(), AtomicU64::new(0)));
        _ = (shared.0.load(), shared.1.load(Ordering::Relaxed));
        let kernel = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(1, Ordering::SeqCst);
                shared.0.edge(Edge::new().ready(Direction::Read, true));
            })
        };
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
