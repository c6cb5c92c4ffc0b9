//! The wheel itself: where a timer hangs, which one is next, and what happens when time passes.

#![forbid(unsafe_code)]

use std::array;
use std::cell::Cell;
use std::fmt;
use std::iter;
use std::time::Instant;

use crate::timer::ring::{NOWHERE, Node, NodeRef, Ring};
use crate::timer::ticks::{TICK_BITS, Ticks};

/// The binary logarithm of the number of slots in a row.
const ROW_BITS: u32 = 6;

/// Slots in a row: as many as a word of occupancy has bits.
const SLOTS: usize = 1 << ROW_BITS;

/// Row 0 holds what is due already; row `n + 1` is level `n` of the wheel. Nine levels of 6 bits hold every tick.
const ROWS: usize = 10;

/// A hierarchical timing wheel: the timers of one worker, to be touched by its thread only.
///
/// It is neither `Send` nor `Sync`. Its methods take `&self`, so that a timer's action can arm and disarm others.
pub(crate) struct Wheel {
    ticks: Ticks,
    /// The present, as far as the wheel knows: every timer up to this tick has fired or is in row 0.
    elapsed: Cell<u64>,
    armed: Cell<usize>,
    /// The sum of how many ticks the timers were late that have fired.
    late: Cell<u64>,
    /// The slot of row 0, 0 or 1, that takes due timers. `expire` flips it and empties the previous one.
    due: Cell<usize>,
    /// Bit `r`: `occupied[r]` is not zero.
    rows: Cell<u16>,
    /// By row; bit `s`: slot `s` is not empty.
    occupied: [Cell<u64>; ROWS],
    /// `ROWS` times `SLOTS` of them.
    slots: Box<[Slot]>,
}

/// The timers of one span of ticks.
struct Slot {
    ring: Ring,
    /// The lowest tick of all timers that have come into the ring since it was empty.
    earliest: Cell<u64>,
}

/// Which slot: a row, and a slot in that row.
#[derive(Clone, Copy)]
struct Place(u16);

const _: () = assert!(ROWS * SLOTS <= NOWHERE as usize);

impl Place {
    #[inline]
    fn new(row: usize, slot: usize) -> Place {
        Place((row << ROW_BITS | slot) as u16)
    }

    #[inline]
    fn row(self) -> usize {
        usize::from(self.0) >> ROW_BITS
    }

    /// Returns the slot's bit in the words of its row.
    #[inline]
    fn bit(self) -> u64 {
        1 << (usize::from(self.0) % SLOTS)
    }

    /// Returns the first tick of the slot's span, in a wheel whose present is `elapsed`. Not for row 0.
    #[inline]
    fn start(self, elapsed: u64) -> u64 {
        let shift = (self.row() as u32 - 1) * ROW_BITS;
        let above = elapsed >> (shift + ROW_BITS) << ROW_BITS;
        let slot = u64::from(self.0) % SLOTS as u64;
        (above | slot) << shift
    }
}

impl Wheel {
    /// Makes an empty wheel whose present is `now`.
    pub(crate) fn new(now: Instant) -> Wheel {
        let empty = || Slot { ring: Ring::new(), earliest: Cell::new(0) };
        Wheel {
            ticks: Ticks::since(now),
            elapsed: Cell::new(0),
            armed: Cell::new(0),
            late: Cell::new(0),
            due: Cell::new(0),
            rows: Cell::new(0),
            occupied: array::from_fn(|_| Cell::new(0)),
            slots: iter::repeat_with(empty).take(ROWS * SLOTS).collect(),
        }
    }

    /// Arms `node`: the first [`expire`](Wheel::expire) at `deadline` or later calls `fire(node)`, by this very pointer, so that
    /// it may lead to what the node is a part of.
    ///
    /// A deadline in the past fires at the next `expire`, one more than 584 years after the wheel was made never.
    #[inline]
    pub(crate) fn insert(&self, node: NodeRef, deadline: Instant) {
        debug_assert!(!node.is_armed(), "the timer is armed already");
        self.armed.set(self.armed.get() + 1);
        self.link(node, self.ticks.ceil(deadline));
    }

    /// Disarms `node`; does nothing if it is not armed.
    #[inline]
    pub(crate) fn remove(&self, node: &Node) {
        if node.is_armed() {
            self.disarm(node);
        }
    }

    /// Returns when `expire` has something to do; `None` if no timer is armed that can ever fire.
    ///
    /// It is the deadline of the earliest timer, rounded up to a tick. It is too early, never too late, if
    /// an earlier timer was removed from the same slot of level 1 or above (a millisecond or more
    /// ahead). That costs one idle wake-up, and the cascade that comes with it, where exactness would
    /// cost a walk for each removal.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let slot = self.slot(self.first(self.rows.get())?);
        self.ticks.start_of(slot.earliest.get())
    }

    /// Returns when a timer with that deadline fires: rounded up to a tick. `None` if it never does.
    pub(crate) fn firing_time(&self, deadline: Instant) -> Option<Instant> {
        self.ticks.start_of(self.ticks.ceil(deadline))
    }

    /// Fires every timer whose deadline is `now` or earlier: disarms it, then calls `fire(node)`.
    ///
    /// They fire in the order of their ticks, those of one tick in the order of their insertion. `fire` may insert and
    /// remove timers, also such as are due in this very call: a removed one does not fire, and an inserted one whose
    /// deadline has passed fires at the next call. `fire` must not call `expire` itself, or the order is lost. `now`
    /// must not run backwards.
    #[inline]
    pub(crate) fn expire(&self, now: Instant, mut fire: impl FnMut(NodeRef)) {
        let present = self.ticks.floor(now);
        self.advance(present);
        let firing = self.due.get();
        self.due.set(1 - firing);
        while let Some(node) = self.slots[firing].ring.front() {
            self.late.set(self.late.get() + present.saturating_sub(node.tick()));
            self.disarm(&node);
            fire(node);
        }
    }

    /// Returns true if no timer is armed.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.armed.get() == 0
    }

    /// Returns the number of armed timers.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.armed.get()
    }

    /// Returns how late all the timers were that have fired, in nanoseconds.
    ///
    /// A timer that was armed for a past deadline is late by the time since then.
    pub(crate) fn lateness(&self) -> u64 {
        self.late.get() << TICK_BITS
    }

    /// Moves the present to `now`, and all that is due by then to row 0, in order.
    fn advance(&self, now: u64) {
        if now <= self.elapsed.get() {
            return;
        }
        while let Some(place) = self.first(self.rows.get() & !1) {
            if place.start(self.elapsed.get()) > now {
                break;
            }
            self.enter(place, now);
        }
        self.elapsed.set(now);
    }

    /// Moves the present into the first slot that is occupied, and its timers to the levels below or to row 0.
    ///
    /// The present moves to the slot's earliest timer at once, so that timer skips the levels in
    /// between.
    fn enter(&self, place: Place, now: u64) {
        let slot = self.slot(place);
        self.elapsed.set(slot.earliest.get().min(now));
        while let Some(node) = slot.ring.front() {
            slot.ring.unlink(&node);
            // The present is inside the slot's span, so the node goes into a lower row, never back here.
            self.link(node, node.tick());
        }
        self.vacate(place);
    }

    /// Links a node into the slot of that tick.
    #[inline]
    fn link(&self, node: NodeRef, tick: u64) {
        let place = self.place_of(tick);
        let slot = self.slot(place);
        if slot.ring.is_empty() {
            self.occupy(place);
            slot.earliest.set(tick);
        } else if tick < slot.earliest.get() {
            slot.earliest.set(tick);
        }
        node.hang(tick, place.0);
        slot.ring.push_back(node);
    }

    /// Unlinks an armed node.
    #[inline]
    fn disarm(&self, node: &Node) {
        let place = Place(node.place());
        let slot = self.slot(place);
        node.hang(0, NOWHERE);
        slot.ring.unlink(node);
        self.armed.set(self.armed.get() - 1);
        if slot.ring.is_empty() {
            self.vacate(place);
        }
    }

    /// Returns the slot for `tick`: row 0 if it has come, else by the highest digit in which it differs from the present.
    #[inline]
    fn place_of(&self, tick: u64) -> Place {
        let elapsed = self.elapsed.get();
        if tick <= elapsed {
            return Place::new(0, self.due.get());
        }
        let level = (tick ^ elapsed).ilog2() / ROW_BITS;
        let digit = (tick >> (level * ROW_BITS)) as usize % SLOTS;
        Place::new(level as usize + 1, digit)
    }

    /// Returns the first occupied slot of the given rows: the slot of the earliest timer.
    #[inline]
    fn first(&self, rows: u16) -> Option<Place> {
        if rows == 0 {
            return None;
        }
        let row = rows.trailing_zeros() as usize;
        Some(Place::new(row, self.occupied[row].get().trailing_zeros() as usize))
    }

    #[inline]
    fn occupy(&self, place: Place) {
        let occupied = &self.occupied[place.row()];
        occupied.set(occupied.get() | place.bit());
        self.rows.set(self.rows.get() | 1 << place.row());
    }

    #[inline]
    fn vacate(&self, place: Place) {
        let occupied = &self.occupied[place.row()];
        occupied.set(occupied.get() & !place.bit());
        if occupied.get() == 0 {
            self.rows.set(self.rows.get() & !(1 << place.row()));
        }
    }

    #[inline]
    fn slot(&self, place: Place) -> &Slot {
        &self.slots[usize::from(place.0)]
    }
}

impl fmt::Debug for Wheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("armed", &self.len())
            .field("elapsed", &self.elapsed.get())
            .finish_non_exhaustive()
    }
}
