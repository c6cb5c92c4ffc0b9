//! The nodes of timers, and the rings that they are linked into.

use std::cell::Cell;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Its neighbours while it is in a ring.
    prev: Cell<Option<NodeRef>>,
    next: Cell<Option<NodeRef>>,
    /// The tick, and in the lowest bits the place: which ring of the wheel the node is in. Written by
    /// its worker, read by any thread.
    hung: AtomicU64,
}

/// No tick is so large that the place takes any of its bits.
const _: () = assert!(ticks::MOST <= u64::MAX >> PLACE_BITS);

impl Node {
    /// Makes a node that is not armed.
    pub(crate) const fn new() -> Node {
        Node { prev: Cell::new(None), next: Cell::new(None), hung: AtomicU64::new(NOWHERE as u64) }
    }

    /// Tells whether the node is in a wheel: inserted, and neither fired nor removed since.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.place() != NOWHERE
    }

    /// Notes where it hangs.
    #[inline]
    pub(super) fn hang(&self, tick: u64, place: u16) {
        // Relaxed: other threads take the value alone.
        self.hung.store(tick << PLACE_BITS | u64::from(place), Ordering::Relaxed);
    }

    /// Keeps a time in the node, which is not armed, until it is armed or the time is taken.
    pub(crate) fn stamp(&self, time: u64) {
        self.hang((time << PLACE_BITS >> PLACE_BITS).max(1), NOWHERE);
    }

    /// Takes the time that was kept here; 0 if there is none. The node is not armed.
    pub(crate) fn take_stamp(&self) -> u64 {
        let stamp = self.tick();
        self.hang(0, NOWHERE);
        stamp
    }

    /// Returns how long before `now` a time was kept, whose uppermost bits are lost.
    pub(crate) fn since(stamp: u64, now: u64) -> u64 {
        let passed = (now << PLACE_BITS).wrapping_sub(stamp << PLACE_BITS);
        // Clocks of two processors may differ a little.
        if passed >> 63 == 0 { passed >> PLACE_BITS } else { 0 }
    }

    #[inline]
    pub(super) fn tick(&self) -> u64 {
        // Relaxed, as all loads of it: written by this thread.
        self.hung.load(Ordering::Relaxed) >> PLACE_BITS
    }

    /// Returns the tick, on any thread. `None` if the node is not armed.
    pub(crate) fn armed_tick(&self) -> Option<u64> {
        // Relaxed: it stands for itself.
        let hung = self.hung.load(Ordering::Relaxed);
        (hung as u16 & NOWHERE != NOWHERE).then_some(hung >> PLACE_BITS)
    }

    #[inline]
    pub(super) fn place(&self) -> u16 {
        self.hung.load(Ordering::Relaxed) as u16 & NOWHERE
    }
}

/// Points to a node that is being armed or is armed, by the pointer that has armed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeRef(NonNull<Node>);

impl NodeRef {
    /// # Safety
    ///
    /// `node` is not armed. It stays in place and alive until it has fired or was removed. One thread touches it, and arms and
    /// removes it in one wheel.
    #[inline]
    pub(crate) unsafe fn new(node: NonNull<Node>) -> Self {
        NodeRef(node)
    }

    /// Returns the pointer that it was made of.
    #[inline]
    pub(crate) fn as_ptr(self) -> NonNull<Node> {
        self.0
    }
}

impl Deref for NodeRef {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        // SAFETY: by the contract of `new` the node is alive while it is armed. A wheel uses no node after it has disarmed it.
        unsafe { self.0.as_ref() }
    }
}

/// A circular list of nodes in the order of their arrival: the head's `prev` is the tail.
///
/// No node points to the ring itself, so that a wheel may be moved.
#[derive(Debug)]
pub(super) struct Ring {
    head: Cell<Option<NodeRef>>,
}

impl Ring {
    pub(super) const fn new() -> Ring {
        Ring { head: Cell::new(None) }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head.get().is_none()
    }

    /// Links a node that is in no ring behind all others.
    #[inline]
    pub(super) fn push_back(&self, node: NodeRef) {
        let head = self.head.get().unwrap_or(node);
        let tail = head.prev.get().filter(|_| head != node).unwrap_or(node);
        node.prev.set(Some(tail));
        node.next.set(Some(head));
        tail.next.set(Some(node));
        head.prev.set(Some(node));
        self.head.set(Some(head));
    }

    /// Takes out a node that is in this ring.
    #[inline]
    pub(super) fn unlink(&self, node: &Node) {
        let (prev, next) = (node.prev.take(), node.next.take());
        let (Some(prev), Some(next)) = (prev, next) else { unreachable!("the node is in no ring") };
        if ptr::eq(&*next, node) {
            return self.head.set(None);
        }
        if self.head.get().is_some_and(|head| ptr::eq(&*head, node)) {
            self.head.set(Some(next));
        }
        prev.next.set(Some(next));
        next.prev.set(Some(prev));
    }

    /// Returns the node that arrived first.
    #[inline]
    pub(super) fn front(&self) -> Option<NodeRef> {
        self.head.get()
    }
}
