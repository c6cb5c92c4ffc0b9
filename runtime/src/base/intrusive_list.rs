//! An intrusive list, whose links lie in their owners: on stacks and in tasks.
//!
//! A link is linked and unlinked anywhere in a few instructions, without allocation. The owner of
//! the list synchronizes it: list and links are touched under the owner's lock alone.

use std::cell::Cell;
use std::iter::successors;
use std::marker::{PhantomData, PhantomPinned};
use std::ptr::{self, NonNull};

/// Points to the first link of a ring, or is null.
pub(crate) struct Ring<T> {
    first: Cell<*const Link<T>>,
    links: PhantomData<T>,
}

// SAFETY: a ring hands out its links' data; where the ring goes, by its lock, the data is reached.
unsafe impl<T> Send for Ring<T> {}

/// Links its owner into a ring, with data of the owner.
pub(crate) struct Link<T> {
    /// Null while in no ring.
    next: Cell<*const Link<T>>,
    previous: Cell<*const Link<T>>,
    data: T,
    /// Its neighbours point to it.
    _pinned: PhantomPinned,
}

impl<T> Link<T> {
    pub(crate) const fn new(data: T) -> Self {
        Link { next: Cell::new(ptr::null()), previous: Cell::new(ptr::null()), data, _pinned: PhantomPinned }
    }

    pub(crate) fn data(&self) -> &T {
        &self.data
    }
}

impl<T> Ring<T> {
    pub(crate) const fn new() -> Self {
        Ring { first: Cell::new(ptr::null()), links: PhantomData }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.get().is_null()
    }

    /// Appends the link.
    ///
    /// # Safety
    /// The link is in no ring, and stays where it is until it was taken out of this one.
    pub(crate) unsafe fn push_back(&mut self, link: &Link<T>) {
        // SAFETY: links in the ring are alive, by this function's contract.
        let Some(first) = (unsafe { self.first.get().as_ref() }) else {
            link.next.set(link);
            link.previous.set(link);
            return self.first.set(link);
        };
        link.next.set(first);
        link.previous.set(first.previous.get());
        // SAFETY: as above; the links of a ring are never null.
        unsafe { (*first.previous.get()).next.set(link) };
        first.previous.set(link);
    }

    /// Takes the link out. Returns false if it was in no ring.
    ///
    /// # Safety
    /// It is in this ring or in none.
    pub(crate) unsafe fn remove(&mut self, link: &Link<T>) -> bool {
        let next = link.next.replace(ptr::null());
        if next.is_null() {
            return false;
        }
        if ptr::eq(next, link) {
            self.first.set(ptr::null());
            return true;
        }
        let previous = link.previous.get();
        // SAFETY: its neighbours are in the ring, so alive.
        unsafe {
            (*next).previous.set(previous);
            (*previous).next.set(next);
        }
        if ptr::eq(self.first.get(), link) {
            self.first.set(next);
        }
        true
    }

    /// Takes out the first link. It is alive for as long as its owner keeps it.
    pub(crate) fn pop_front(&mut self) -> Option<NonNull<Link<T>>> {
        let first = NonNull::from(self.first()?);
        // SAFETY: it is in this ring.
        unsafe { self.remove(first.as_ref()) };
        Some(first)
    }

    /// Returns the first link, which stays in the ring.
    pub(crate) fn first(&self) -> Option<&Link<T>> {
        // SAFETY: a link in the ring is alive, and is taken out by `&mut self` only.
        unsafe { self.first.get().as_ref() }
    }

    /// Calls `f` with the data of all links in order.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&T)) {
        self.links().for_each(|link| each(&link.data));
    }

    fn links(&self) -> impl Iterator<Item = &Link<T>> {
        successors(self.first(), |link| {
            let next = link.next.get();
            // SAFETY: as in `first`.
            (!ptr::eq(next, self.first.get())).then(|| unsafe { &*next })
        })
    }
}
