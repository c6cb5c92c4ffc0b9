//! The last events of a worker, in a ring that other threads read without stopping the worker.
//!
//! ```text
//!  the worker, which alone writes              a reader
//!
//!  n := written                                end := written                      Acquire
//!  fence Release                               copies the slots of the last events up to end
//!  the slot of event n := its two words        fence Acquire
//!  written := n + 1            Release         n := written
//!                                              keeps the events since n + 1 - capacity
//! ```
//!
//! * The Acquire of `end` pairs with the Release of `written`: the reader sees the events before `end`, or later ones
//!   in their slots.
//! * A reader that has copied a word of a later event m sees m or more at its second look: the worker had stored
//!   `written` = m before its fence, and the word after it; the reader has loaded the word before its fence, and looks after
//!   it. Event m took the slot of event m - capacity, which the reader drops, as it drops all before it.
//! * So no event is torn, and the reader knows how many it has missed: all that are older than those it keeps.
//!
//! `tests/loom/event_ring_models.rs` has the model.

#![forbid(unsafe_code)]

use std::array;

use crate::base::primitive::{AtomicU64, Ordering, fence};

/// An event as the ring keeps it.
pub(crate) type Words = [u64; 2];

pub(crate) struct EventRing {
    slots: Box<[[AtomicU64; 2]]>,
    written: AtomicU64,
}

/// What a reader finds in a ring.
pub(crate) struct Copied {
    /// In the order in which they were written.
    pub(crate) events: Vec<Words>,
    /// How many events there were before those.
    pub(crate) lost: u64,
}

impl EventRing {
    /// Makes a ring for so many events.
    ///
    /// # Panics
    /// If that is no power of two. Events of others would share slots, and be torn.
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity.is_power_of_two(), "a ring for {capacity} events");
        let slot = |_| array::from_fn(|_| AtomicU64::new(0));
        EventRing { slots: (0..capacity).map(slot).collect(), written: AtomicU64::new(0) }
    }

    /// Writes an event over the oldest one. Called by the worker.
    #[inline]
    pub(crate) fn push(&self, [first, second]: Words) {
        // Relaxed: only this thread writes it.
        let number = self.written.load(Ordering::Relaxed);
        // Release: pairs with the reader's Acquire fence, which then looks at this number or a later one.
        fence(Ordering::Release);
        let slot = self.slot(number);
        // Relaxed: published below, or ordered by the fences.
        slot[0].store(first, Ordering::Relaxed);
        slot[1].store(second, Ordering::Relaxed);
        // Release: pairs with the Acquire in `copy`.
        self.written.store(number + 1, Ordering::Release);
    }

    /// Copies the events that the ring holds. Callable from any thread.
    ///
    /// Those that the worker writes over meanwhile are missing, and the oldest one always.
    pub(crate) fn copy(&self) -> Copied {
        let capacity = self.slots.len() as u64;
        // Acquire: pairs with the Release in `push`.
        let end = self.written.load(Ordering::Acquire);
        let begin = (end + 1).saturating_sub(capacity);
        // Relaxed: ordered by the Acquire above and the fence below.
        let copy = |number| self.slot(number).each_ref().map(|word| word.load(Ordering::Relaxed));
        let mut events: Vec<Words> = (begin..end).map(copy).collect();
        // Acquire: pairs with the Release fence in `push`.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        let whole = (self.written.load(Ordering::Relaxed) + 1).saturating_sub(capacity).max(begin);
        events.drain(..(whole - begin).min(events.len() as u64) as usize);
        Copied { events, lost: whole.min(end) }
    }

    fn slot(&self, number: u64) -> &[AtomicU64; 2] {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }
}
