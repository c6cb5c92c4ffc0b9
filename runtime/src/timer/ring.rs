//! The nodes of timers, and the rings that they are linked into.

use std::cell::Cell;
use std::ptr;

use crate::timer::ticks;

/// The binary logarithm of the number of places, that of a node in no ring included.
const PLACE_BITS: u32 = 10;

/// The place of a node that is in no ring.
pub(super) const NOWHERE: u16 = (1 << PLACE_BITS) - 1;

/// One timer: part of whatever waits for it, and linked into a [`Wheel`](crate::timer::wheel::Wheel) while it is armed.
///
/// All fields are cells, and no code forms a `&mut Node` while it is armed: its neighbours write to
/// it.
#[derive(Debug)]
pub(crate) struct Node {
    /// Valid while the place is not [`NOWHERE`], as is `next`: both then point to armed nodes of the same ring.
    prev: Cell<*const Node>,
    next: Cell<*const Node>,
    /// The tick, and in the lowest bits the place: which ring of the wheel the node is in.
    hung: Cell<u64>,
}

/// No tick is so large that the place takes any of its bits.
const _: () = assert!(ticks::MOST <= u64::MAX >> PLACE_BITS);

impl Node {
    /// Makes a node that is not armed.
    pub(crate) const fn new() -> Node {
        Node { prev: Cell::new(ptr::null()), next: Cell::new(ptr::null()), hung: Cell::new(NOWHERE as u64) }
    }

    /// Tells whether the node is in a wheel: inserted, and neither fired nor removed since.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.place() != NOWHERE
    }

    /// Notes where it hangs.
    #[inline]
    pub(super) fn hang(&self, tick: u64, place: u16) {
        self.hung.set(tick << PLACE_BITS | u64::from(place));
    }

    #[inline]
    pub(super) fn tick(&self) -> u64 {
        self.hung.get() >> PLACE_BITS
    }

    #[inline]
    pub(super) fn place(&self) -> u16 {
        self.hung.get() as u16 & NOWHERE
    }
}

/// A circular list of nodes in the order of their arrival: the head's `prev` is the tail.
///
/// No node points to the ring itself, so that a wheel may be moved. Invariant: every linked node is alive and in place
/// (what [`Wheel::insert`](crate::timer::wheel::Wheel::insert) asks of its caller), and in this ring only.
#[derive(Debug)]
pub(super) struct Ring {
    head: Cell<*const Node>,
}

impl Ring {
    pub(super) const fn new() -> Ring {
        Ring { head: Cell::new(ptr::null()) }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head.get().is_null()
    }

    /// Links `node` behind all others.
    ///
    /// # Safety
    ///
    /// `node` is in no ring, and stays alive and in place until it is unlinked.
    #[inline]
    pub(super) unsafe fn push_back(&self, node: *const Node) {
        let head = self.head.get();
        // SAFETY: the caller vouches for `node`; a head and its `prev` are linked nodes, alive by the ring's invariant.
        unsafe {
            if head.is_null() {
                (*node).prev.set(node);
                (*node).next.set(node);
                self.head.set(node);
            } else {
                let tail = (*head).prev.get();
                (*node).prev.set(tail);
                (*node).next.set(head);
                (*tail).next.set(node);
                (*head).prev.set(node);
            }
        }
    }

    /// Takes `node` out.
    ///
    /// # Safety
    ///
    /// `node` is in this ring.
    #[inline]
    pub(super) unsafe fn unlink(&self, node: *const Node) {
        // SAFETY: a linked node and its neighbours are alive by the ring's invariant.
        unsafe {
            let (prev, next) = ((*node).prev.get(), (*node).next.get());
            if ptr::eq(next, node) {
                self.head.set(ptr::null());
                return;
            }
            (*prev).next.set(next);
            (*next).prev.set(prev);
            if ptr::eq(self.head.get(), node) {
                self.head.set(next);
            }
        }
    }

    /// The node that arrived first.
    #[inline]
    pub(super) fn front(&self) -> Option<*const Node> {
        let head = self.head.get();
        (!head.is_null()).then_some(head)
    }

    /// The earliest tick among the nodes; `None` if there are none, or more than `limit`.
    pub(super) fn earliest(&self, limit: usize) -> Option<u64> {
        let head = self.front()?;
        let mut node = head;
        let mut earliest = u64::MAX;
        for _ in 0..limit {
            // SAFETY: linked nodes are alive by the ring's invariant, and `next` of one is another.
            unsafe {
                earliest = earliest.min((*node).tick());
                node = (*node).next.get();
            }
            if ptr::eq(node, head) {
                return Some(earliest);
            }
        }
        None
    }
}
