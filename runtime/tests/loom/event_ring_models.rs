//! The ring of a worker's events, which a reader copies meanwhile.

use std::sync::Arc;

use loom::thread;

use crate::event_ring::EventRing;
use crate::primitive::check;

/// Finds: an event of words that were written apart, one at the place of another, and one that is missing but not counted.
#[test]
fn a_reader_sees_whole_events_in_order_and_knows_how_many_it_has_missed() {
    const EVENTS: u64 = 4;
    check(|| {
        let ring = Arc::new(EventRing::new(2));
        // Both slots are in use.
        (1..=2).for_each(|number| ring.push([number, number]));
        let worker = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || (3..=EVENTS).for_each(|number| ring.push([number, number])))
        };
        let seen = ring.copy();
        for (event, number) in seen.events.iter().zip(seen.lost + 1..) {
            assert_eq!(*event, [number; 2]);
        }
        worker.join().unwrap();
        let seen = ring.copy();
        assert_eq!((seen.events, seen.lost), (vec![[EVENTS; 2]], EVENTS - 1));
    });
}
