//! The intrusive FIFO list of sleepers, whose nodes live on the sleepers' own stacks.
//!
//! The list has no lock of its own: it is kept in a [`Lock`](super::Lock) together with the state that the sleepers
//! wait on. A node holds the right to wake its sleeper (a [`RawWake`]); whoever unlinks the node under the lock takes
//! that right out of it and touches the node no more, so the node may die as soon as the wake lands.
//!
//! ```text
//!  List{head, tail} ─▶ Node ⇄ Node ⇄ Node        linked: in the list, `wake` is Some
//!                                                 unlinked by a waker: `wake` was taken, the sleeper answers Served
//!                                                 unlinked by its sleeper: `wake` is dropped unused
//! ```

use std::marker::PhantomData;
use std::ptr;

use super::RawWake;
use crate::primitive::Cell;

/// A place in a [`List`], on the stack of the one who sleeps.
///
/// All fields are cells and nobody forms a `&mut` to a published node: a waker writes to it while its sleeper holds a
/// shared reference.
pub struct Node {
    previous: Cell<*const Node>,
    next: Cell<*const Node>,
    wake: Cell<Option<RawWake>>,
    not_send: PhantomData<*const ()>,
}

impl Node {
    /// Makes a node that is in no list.
    pub const fn new() -> Self {
        Node {
            previous: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            wake: Cell::new(None),
            not_send: PhantomData,
        }
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}

/// Sleepers in the order in which they came.
pub struct List {
    head: *const Node,
    tail: *const Node,
}

// SAFETY: the list is only reached under the lock it is kept in (the contract of `push_back`), and what it hands out,
// `RawWake`, is `Send`.
unsafe impl Send for List {}

impl List {
    /// Makes an empty list.
    pub const fn new() -> Self {
        List { head: ptr::null(), tail: ptr::null() }
    }

    /// True when nobody waits.
    pub fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Appends a sleeper.
    ///
    /// # Safety
    /// `node` is in no list, stays alive and in place until it is unlinked, and this list and its nodes are only
    /// touched under one lock.
    pub unsafe fn push_back(&mut self, node: &Node, wake: RawWake) {
        node.wake.set(Some(wake));
        node.previous.set(self.tail);
        node.next.set(ptr::null());
        match self.tail.is_null() {
            true => self.head = node,
            // SAFETY: a linked node is alive by the contract under which it was pushed.
            false => unsafe { (*self.tail).next.set(node) },
        }
        self.tail = node;
    }

    /// Unlinks the longest waiter and takes the right to wake it.
    pub fn pop_front(&mut self) -> Option<RawWake> {
        if self.head.is_null() {
            return None;
        }
        // SAFETY: `head` is linked, hence alive until its wake lands, which is after this call.
        let node = unsafe { &*self.head };
        // SAFETY: it is linked in this list.
        unsafe { self.unlink(node) };
        node.wake.take()
    }

    /// Unlinks `node` and drops its right to wake. False if a waker was first, whose wake is then on its way.
    ///
    /// # Safety
    /// `node` is in this list or in none.
    pub unsafe fn remove(&mut self, node: &Node) -> bool {
        if node.wake.take().is_none() {
            return false;
        }
        // SAFETY: it held its wake, so it is linked, and by the contract in this list.
        unsafe { self.unlink(node) };
        true
    }

    /// # Safety
    /// `node` is linked in this list.
    unsafe fn unlink(&mut self, node: &Node) {
        let (previous, next) = (node.previous.get(), node.next.get());
        match previous.is_null() {
            true => self.head = next,
            // SAFETY: the neighbours of a linked node are linked, hence alive.
            false => unsafe { (*previous).next.set(next) },
        }
        match next.is_null() {
            true => self.tail = previous,
            // SAFETY: as above.
            false => unsafe { (*next).previous.set(previous) },
        }
    }
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}
