//! The messages that wait in a channel: a ring of slots, or a chain of blocks of slots.
//!
//! ```text
//!  bounded:    tail = head: one allocation, in which both indices wrap
//!
//!  unbounded:  head ─▶ block ─▶ block ─▶ tail          spare ─▶ block
//! ```
//!
//! The two differ only in the step from the last slot of a block: in a ring it leads back to the first slot, in a chain to the
//! next block. The queue lies under the channel's lock, where nothing is allocated. It asks for a missing block, and hands out a
//! spent one, except for one spare.

use std::mem::{self, MaybeUninit};
use std::ptr;

use crate::drop_all::drop_all;

/// Slots of a block.
const SPAN: usize = 32;

/// A block of an unbounded queue. Its slots do not drop their messages.
#[repr(C)]
pub(crate) struct Block<T> {
    // The first field: a pointer to a block is one to its slots.
    slots: [MaybeUninit<T>; SPAN],
    next: *mut Block<T>,
}

impl<T> Block<T> {
    /// Makes a block in place: with large messages it is too large for a stack.
    pub(crate) fn new() -> Box<Self> {
        let mut block = Box::<Self>::new_uninit();
        // SAFETY: the pointer is to the memory of the block, of which only this field needs a value: slots may be without.
        unsafe {
            (&raw mut (*block.as_mut_ptr()).next).write(ptr::null_mut());
            block.assume_init()
        }
    }
}

/// Messages in the order in which they were sent.
pub(crate) struct Queue<T> {
    /// The slots that the next message is read from; of a chain, a `Block`.
    head: *mut MaybeUninit<T>,
    head_index: usize,
    /// The slots that the next message is written to.
    tail: *mut MaybeUninit<T>,
    tail_index: usize,
    /// How many slots there are behind one pointer.
    span: usize,
    len: usize,
    shape: Shape,
    spare: *mut Block<T>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Ring,
    Chain,
}

/// A message from the queue, and a block that is to be freed outside the lock.
pub(crate) struct Popped<T> {
    pub(crate) message: T,
    pub(crate) spent: Option<Box<Block<T>>>,
}

/// A free slot at the end of a queue. So a message is moved only once there is a place for it.
#[must_use]
pub(crate) struct Slot<'a, T> {
    /// Its `tail_index` is less than its `span`.
    queue: &'a mut Queue<T>,
}

impl<T> Slot<'_, T> {
    /// Appends a message.
    #[inline(always)]
    pub(crate) fn fill(self, message: T) {
        let queue = self.queue;
        // SAFETY: `tail` has `span` slots, of which this one is free: in a ring by the count of the room, in a chain since
        // slots are written once between two turns.
        unsafe { (*queue.tail.add(queue.tail_index)).write(message) };
        queue.tail_index += 1;
        queue.len += 1;
    }

    /// Appends the message in `place`, if there is one.
    ///
    /// On its own, so that the compiler knows that nothing changes the place meanwhile, and moves the message once.
    #[inline(never)]
    pub(crate) fn fill_from(self, place: &mut Option<T>) {
        if let Some(message) = place.take() {
            self.fill(message);
        }
    }
}

// SAFETY: the queue owns its slots and the messages in them, and hands out nothing that points into it.
unsafe impl<T: Send> Send for Queue<T> {}

impl<T> Queue<T> {
    /// A queue of `capacity` slots.
    pub(crate) fn ring(capacity: usize) -> Self {
        let slots = Box::into_raw(Box::<[T]>::new_uninit_slice(capacity)).cast();
        Queue::with(slots, 0, capacity, Shape::Ring)
    }

    /// A queue that grows.
    pub(crate) const fn chain() -> Self {
        // Without a block there is as little left to write to as at the end of one.
        Queue::with(ptr::null_mut(), SPAN, SPAN, Shape::Chain)
    }

    /// A queue of one message, or none.
    pub(crate) fn of(message: Option<T>) -> Self {
        let mut queue = Queue::ring(usize::from(message.is_some()));
        if let Some(message) = message
            && let Some(slot) = queue.slot()
        {
            slot.fill(message);
        }
        queue
    }

    const fn with(slots: *mut MaybeUninit<T>, index: usize, span: usize, shape: Shape) -> Self {
        Queue {
            head: slots,
            head_index: index,
            tail: slots,
            tail_index: index,
            span,
            len: 0,
            shape,
            spare: ptr::null_mut(),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the slot for the next message. None: [`supply`](Queue::supply) a block first. A ring has to have room.
    #[inline]
    pub(crate) fn slot(&mut self) -> Option<Slot<'_, T>> {
        debug_assert!(self.shape == Shape::Chain || self.len < self.span, "room is counted before");
        if self.tail_index == self.span && !self.turn_tail() {
            return None;
        }
        Some(Slot { queue: self })
    }

    /// Takes the oldest message.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Popped<T>> {
        if self.len == 0 {
            return None;
        }
        let spent = if self.head_index == self.span { self.turn_head() } else { None };
        // SAFETY: `head` has `span` slots, and the index was turned before the end.
        let slot = unsafe { self.head.add(self.head_index) };
        self.head_index += 1;
        self.len -= 1;
        // Read last, so that a large message is moved only once.
        // SAFETY: `len` messages stood from this slot on, so that it was written and not read since.
        Some(Popped { message: unsafe { (*slot).assume_init_read() }, spent })
    }

    /// Exchanges the oldest message of a ring for `message`, which becomes the newest one. Returns false if there is none.
    pub(crate) fn exchange_oldest(&mut self, message: &mut T) -> bool {
        debug_assert!(self.shape == Shape::Ring, "a chain has room");
        if self.len == 0 {
            return false;
        }
        self.head_index %= self.span;
        self.tail_index %= self.span;
        // SAFETY: a ring is one allocation of `span` slots, so `head` and `tail` point to the same ones, and both indices are
        // less than `span`. The slot at `head_index` holds a message. That at `tail_index` is free, or the same one if the ring is
        // full.
        unsafe {
            let oldest = self.head.add(self.head_index);
            mem::swap((*oldest).assume_init_mut(), message);
            ptr::copy(oldest, self.tail.add(self.tail_index), 1);
        }
        self.head_index += 1;
        self.tail_index += 1;
        true
    }

    /// Gives the queue a block to grow with. Hands it back if it has one.
    pub(crate) fn supply(&mut self, block: Box<Block<T>>) -> Option<Box<Block<T>>> {
        if !self.spare.is_null() {
            return Some(block);
        }
        self.spare = Box::into_raw(block);
        None
    }

    /// The next slots to write to. Returns false if there are none.
    #[cold]
    fn turn_tail(&mut self) -> bool {
        if self.shape == Shape::Ring {
            self.tail_index = 0;
            return true;
        }
        if self.len == 0 && !self.head.is_null() {
            // The one block that is left was read to its end.
            self.head_index = 0;
            self.tail_index = 0;
            return true;
        }
        if self.spare.is_null() {
            return false;
        }
        let block = mem::replace(&mut self.spare, ptr::null_mut());
        // SAFETY: the spare is a block of this queue's, and `tail` is one that is in its chain, if there is any.
        unsafe {
            (*block).next = ptr::null_mut();
            match self.tail.cast::<Block<T>>().as_mut() {
                Some(last) => last.next = block,
                None => (self.head, self.head_index) = (block.cast(), 0),
            }
        }
        (self.tail, self.tail_index) = (block.cast(), 0);
        true
    }

    /// The next slots to read from. The block that was read to its end, if it is not kept.
    #[cold]
    fn turn_head(&mut self) -> Option<Box<Block<T>>> {
        self.head_index = 0;
        if self.shape == Shape::Ring {
            return None;
        }
        let spent = self.head.cast::<Block<T>>();
        // SAFETY: a message is left, so that a block follows this one.
        self.head = unsafe { (*spent).next }.cast();
        if self.spare.is_null() {
            self.spare = spent;
            return None;
        }
        // SAFETY: it came from a `Box` and nothing points to it any more.
        Some(unsafe { Box::from_raw(spent) })
    }

    /// Frees the slots of an empty queue, which is not used any more.
    fn free(&mut self) {
        match self.shape {
            Shape::Ring => {
                let slots = ptr::slice_from_raw_parts_mut(self.head, self.span);
                // SAFETY: these are the slots that `ring` made, and they are empty. The drop, which calls this once, is the last
                // use of the queue.
                drop(unsafe { Box::from_raw(slots) });
            }
            Shape::Chain => {
                for block in [self.head.cast::<Block<T>>(), self.spare] {
                    if !block.is_null() {
                        // SAFETY: it came from a `Box`; without messages the chain has no other block. As above.
                        drop(unsafe { Box::from_raw(block) });
                    }
                }
            }
        }
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        if self.is_empty() {
            return self.free();
        }
        drop_all(|| {
            while let Some(popped) = self.pop() {
                drop(popped.message);
            }
            self.free();
        });
    }
}
