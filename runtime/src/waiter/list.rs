//! The intrusive FIFO list of sleepers, whose nodes live on the sleepers' own stacks.
//!
//! The list has no lock of its own: it is kept in a [`Lock`](crate::base::spin_lock::Lock) together with the state that the sleepers
//! wait on. A node holds the right to wake its sleeper (a [`RawWake`]). The thread that unlinks the
//! node under the lock takes that right out of it and touches the node no more. So the node may die
//! as soon as the wake lands.
//!
//! ```text
//!  List{head} ─▶ Node ⇄ Node ⇄ Node ⇄ (head)     a ring, so that one pointer finds both ends
//!
//!  linked: in the list, `wake` is Some
//!  unlinked by a waker: `wake` was taken, the sleeper answers Served
//!  unlinked by its sleeper: `wake` is dropped unused
//! ```

use std::iter::successors;
use std::marker::PhantomData;
use std::ptr;

use crate::base::primitive::Cell;
use crate::waiter::kind::RawWake;

/// Links one sleeper into a [`List`], and carries data for its wakers.
///
/// Lives on the sleeper's stack.
///
/// All fields are cells, and no code forms a `&mut` to a published node: a waker writes to it while
/// its sleeper holds a shared reference. The fields of `data` are cells or atomics for the same
/// reason.
pub struct Node<T = ()> {
    previous: Cell<*const Node<T>>,
    next: Cell<*const Node<T>>,
    wake: Cell<Option<RawWake>>,
    data: T,
    not_send: PhantomData<*const ()>,
}

impl Node {
    /// Makes a node that is in no list.
    pub const fn new() -> Self {
        Node::with(())
    }
}

impl<T> Node<T> {
    /// Makes a node that is in no list and carries `data`.
    pub const fn with(data: T) -> Self {
        Node {
            previous: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            wake: Cell::new(None),
            data,
            not_send: PhantomData,
        }
    }

    /// Returns the data of the node.
    ///
    /// While the node is linked, touch it only under the lock of the list.
    pub fn data(&self) -> &T {
        &self.data
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}

/// Holds sleepers in the order of their arrival.
pub struct List<T = ()> {
    head: *const Node<T>,
}

// SAFETY: the list is only reached under the lock it is kept in (the contract of `push_back`). That
// contract also lets any thread touch the nodes' data. What the list hands out, `RawWake`, is
// `Send`.
unsafe impl<T> Send for List<T> {}

impl<T> List<T> {
    /// Makes an empty list.
    pub const fn new() -> Self {
        List { head: ptr::null() }
    }

    /// Returns true if no sleeper is linked.
    pub fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Counts the sleepers, in linear time.
    pub fn len(&self) -> usize {
        self.nodes().count()
    }

    /// Iterates over the nodes in their order.
    fn nodes(&self) -> impl Iterator<Item = &Node<T>> {
        // SAFETY: a linked node is alive by the contract under which it was pushed, and no node is
        // unlinked while this list is borrowed.
        let first = unsafe { self.head.as_ref() };
        successors(first, |node| {
            let next = node.next.get();
            // SAFETY: as above.
            (!ptr::eq(next, self.head)).then(|| unsafe { &*next })
        })
    }

    /// Appends a sleeper.
    ///
    /// # Safety
    /// `node` is in no list, stays alive and in place until it is unlinked, and this list, its nodes and their data are
    /// only touched under one lock, by threads that may touch such data.
    pub unsafe fn push_back(&mut self, node: &Node<T>, wake: RawWake) {
        node.wake.set(Some(wake));
        if self.head.is_null() {
            node.previous.set(node);
            node.next.set(node);
            self.head = node;
            return;
        }
        // SAFETY: linked nodes are alive by the contract under which they were pushed.
        unsafe {
            let first = &*self.head;
            let last = &*first.previous.get();
            node.previous.set(last);
            node.next.set(first);
            last.next.set(node);
            first.previous.set(node);
        }
    }

    /// Unlinks the longest waiter and takes the right to wake it.
    pub fn pop_front(&mut self) -> Option<RawWake> {
        // SAFETY: `head` is linked, hence alive until its wake lands or its sleeper has unlinked it under the lock.
        let first = unsafe { self.head.as_ref() }?;
        // SAFETY: as above.
        unsafe { self.take_out(first) }
    }

    /// Unlinks all `wanted` waiters, in their order, and hands out their wakes.
    pub fn pop_each(&mut self, wanted: impl Fn(&T) -> bool, mut wakes: impl FnMut(RawWake)) {
        let Some(last) = self.nodes().last().map(ptr::from_ref) else { return };
        let mut node = self.head;
        loop {
            // SAFETY: the node was linked when the walk came to its predecessor. Since then this
            // list has unlinked at most that predecessor, so the node is still linked, hence alive.
            let (next, is_wanted) = unsafe { ((*node).next.get(), wanted(&(*node).data)) };
            if is_wanted {
                // SAFETY: linked, as above.
                unsafe { self.take_out(&*node) }.into_iter().for_each(&mut wakes);
            }
            if ptr::eq(node, last) {
                return;
            }
            node = next;
        }
    }

    /// Unlinks a node and returns its wake.
    ///
    /// # Safety
    /// `node` is linked in this list.
    unsafe fn take_out(&mut self, node: &Node<T>) -> Option<RawWake> {
        // SAFETY: the caller's contract.
        unsafe { self.unlink(node) };
        node.wake.take()
    }

    /// Unlinks `node` and drops its right to wake.
    ///
    /// Returns false if a waker was first. Its wake is then on its way.
    ///
    /// # Safety
    /// `node` is in this list or in none.
    pub unsafe fn remove(&mut self, node: &Node<T>) -> bool {
        if node.wake.take().is_none() {
            return false;
        }
        // SAFETY: it held its wake, so it is linked, and by the contract in this list.
        unsafe { self.unlink(node) };
        true
    }

    /// # Safety
    /// `node` is linked in this list.
    unsafe fn unlink(&mut self, node: &Node<T>) {
        let (previous, next) = (node.previous.get(), node.next.get());
        if ptr::eq(next, node) {
            self.head = ptr::null();
            return;
        }
        // SAFETY: the neighbours of a linked node are linked, hence alive.
        unsafe {
            (*previous).next.set(next);
            (*next).previous.set(previous);
        }
        if ptr::eq(self.head, node) {
            self.head = next;
        }
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}
