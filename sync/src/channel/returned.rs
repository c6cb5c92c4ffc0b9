//! Messages whose receivers have gone away, in the order in which they were given to them.
//!
//! Each is in a box of its own, which is made before the lock is taken. The chain of boxes is not dropped by recursion: who
//! drops it may have a small stack.

use std::ptr;

/// A message whose receiver has gone away. In a box, since there may be no room for it.
pub(crate) struct Returned<T> {
    pub(crate) message: Option<T>,
    /// Its place among those that were put into hands.
    pub(crate) number: u64,
    next: *mut Returned<T>,
}

impl<T> Returned<T> {
    /// A message that was in the hands of its receiver.
    pub(crate) fn new(message: T, number: u64) -> Box<Self> {
        Box::new(Returned { message: Some(message), number, next: ptr::null_mut() })
    }

    /// A message that no hand was there for: it comes after all others.
    pub(crate) fn late(message: T) -> Box<Self> {
        Self::new(message, u64::MAX)
    }

    /// The message of one that was in the chain.
    pub(crate) fn into_message(self) -> T {
        self.message.expect("what is in the chain has its message")
    }
}

/// A chain of them: the oldest first, by their numbers.
pub(crate) struct Chain<T> {
    first: *mut Returned<T>,
    /// Of a chain that has a first one.
    last: *mut Returned<T>,
    len: usize,
}

// SAFETY: the chain owns its boxes and the messages in them, and hands out nothing that points into it.
unsafe impl<T: Send> Send for Chain<T> {}

impl<T> Chain<T> {
    pub(crate) const fn new() -> Self {
        Chain { first: ptr::null_mut(), last: ptr::null_mut(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the oldest.
    pub(crate) fn pop(&mut self) -> Option<Box<Returned<T>>> {
        if self.len == 0 {
            return None;
        }
        // SAFETY: the first of a chain that has one came from a `Box`, and only the chain points to it.
        let oldest = unsafe { Box::from_raw(self.first) };
        self.first = oldest.next;
        self.len -= 1;
        Some(oldest)
    }

    /// Puts one in its place, which is the end or the beginning where they come in order; else it is looked for.
    pub(crate) fn insert(&mut self, returned: Box<Returned<T>>) {
        let number = returned.number;
        let returned = Box::into_raw(returned);
        // SAFETY: all of the chain came from boxes and lives until it is popped, as does this one; only the chain points to
        // them, and no reference to any is kept.
        unsafe {
            if self.len == 0 {
                (*returned).next = ptr::null_mut();
                (self.first, self.last) = (returned, returned);
            } else if (*self.last).number <= number {
                (*returned).next = ptr::null_mut();
                (*self.last).next = returned;
                self.last = returned;
            } else {
                // The last one stays behind it.
                let mut place = &raw mut self.first;
                while (**place).number <= number {
                    place = &raw mut (**place).next;
                }
                (*returned).next = *place;
                *place = returned;
            }
        }
        self.len += 1;
    }
}

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        while let Some(returned) = self.pop() {
            drop(returned);
        }
    }
}
