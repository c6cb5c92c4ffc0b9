//! The raw half of the wait queue: entries on the waiters' stacks, linked into lanes.
//!
//! ```text
//!             push                 take                       land
//!   Apart ───────────▶ Queued ─────────────▶ Served, chained ───────▶ Served, its waiter runs
//!     ▲                  │
//!     └──────────────────┘ remove, by its waiter
//!
//!  Lane{head} ─▶ Entry ⇄ Entry ⇄ Entry ⇄ (head)      a ring, so that one pointer finds both ends
//!  Served{first, last} ─▶ Entry ─▶ Entry             a chain, by `next` alone
//! ```
//!
//! Everything but the chain is touched under the lock of the queue alone. The chain belongs to the thread that served.
//! Its entries stay: each of their waiters finds `Served` under the lock, and then waits until its wake has landed.

use std::iter::successors;
use std::marker::PhantomPinned;
use std::ptr;
use std::task::Waker;

use crate::base::primitive::{Cell, UnsafeCell};
use crate::waiter::kind::{RawWake, call_waker};

/// How many wakers of futures are kept on the stack; more take an allocation.
const FEW: usize = 16;

/// A waiter's place in a lane, and its data.
pub(super) struct Entry<T> {
    previous: Cell<*const Entry<T>>,
    next: Cell<*const Entry<T>>,
    wake: Cell<Option<RawWake>>,
    stage: Cell<Stage>,
    /// `None` once its waiter has taken it back.
    data: UnsafeCell<Option<T>>,
    /// Its neighbours point to it.
    _pinned: PhantomPinned,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Apart,
    Queued,
    Served,
}

impl<T> Entry<T> {
    pub(super) const fn new(data: T) -> Self {
        Entry {
            previous: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            wake: Cell::new(None),
            stage: Cell::new(Stage::Apart),
            data: UnsafeCell::new(Some(data)),
            _pinned: PhantomPinned,
        }
    }

    /// True once a waker has taken the entry out. For its waiter: under the lock, or after the wake.
    pub(super) fn is_served(&self) -> bool {
        self.stage.get() == Stage::Served
    }

    /// The data, while only the caller reaches it.
    ///
    /// # Safety
    /// The entry is in no lane, and the caller is its waiter or has just served it under the lock. The result is not
    /// kept beyond that.
    #[expect(clippy::mut_from_ref, reason = "the contract keeps the borrow alone")]
    pub(super) unsafe fn data_mut(&self) -> &mut T {
        // SAFETY: by this function's contract the borrow is the only one.
        let data = unsafe { &mut *self.data.get() };
        data.as_mut().expect("the data of an entry is there until its wait is over")
    }

    /// Takes the data out.
    ///
    /// # Safety
    /// The caller is the entry's waiter, and its wait is over.
    pub(super) unsafe fn take_data(&self) -> T {
        // SAFETY: the wait is over, so only the waiter reaches the data.
        let data = unsafe { &mut *self.data.get() };
        data.take().expect("the data of an entry is taken once")
    }

    /// The data of an entry in a lane.
    ///
    /// # Safety
    /// The entry is linked, and stays so while the result lives, under the lock.
    unsafe fn look(&self) -> &T {
        // SAFETY: nothing writes to the data of a linked entry, by the contracts of `data_mut` and `take_data`.
        let data = unsafe { &*self.data.get() };
        data.as_ref().expect("a queued entry has data")
    }
}

/// Waiters in their order.
pub(super) struct Lane<T> {
    head: *const Entry<T>,
}

// SAFETY: a lane is only reached under the lock that it is kept in (contract of `push`). What it hands to other threads
// is data, which is `Send`, and `RawWake`, which is too.
unsafe impl<T: Send> Send for Lane<T> {}

impl<T> Lane<T> {
    pub(super) const fn new() -> Self {
        Lane { head: ptr::null() }
    }

    /// The entries, longest waiter first.
    fn entries(&self) -> impl Iterator<Item = &Entry<T>> {
        // SAFETY: a linked entry is alive by the contract of `push`; none is unlinked while this lane is borrowed.
        let first = unsafe { self.head.as_ref() };
        successors(first, |entry| {
            let next = entry.next.get();
            // SAFETY: as above.
            (!ptr::eq(next, self.head)).then(|| unsafe { &*next })
        })
    }

    /// The data of the waiters, longest waiter first.
    pub(super) fn data(&self) -> impl Iterator<Item = &T> {
        // SAFETY: linked, and this lane stays borrowed.
        self.entries().map(|entry| unsafe { entry.look() })
    }

    /// Links an entry in at the back.
    ///
    /// # Safety
    /// `entry` is in no lane. It stays alive and in place until it was [removed](Lane::remove), or was served and its
    /// wake has landed. The lane is only reached under one lock, which is held. `wake` is of the waiter's present sleep.
    pub(super) unsafe fn push(&mut self, entry: &Entry<T>, wake: RawWake) {
        entry.stage.set(Stage::Queued);
        entry.wake.set(Some(wake));
        // SAFETY: linked entries are alive, by this function's contract.
        match unsafe { self.head.as_ref() } {
            None => {
                entry.previous.set(entry);
                entry.next.set(entry);
                self.head = entry;
            }
            Some(first) => {
                let last = first.previous.get();
                entry.previous.set(last);
                entry.next.set(first);
                // SAFETY: as above.
                unsafe { (*last).next.set(entry) };
                first.previous.set(entry);
            }
        }
    }

    /// Unlinks an entry for its waiter. False if it was served.
    ///
    /// # Safety
    /// `entry` was last pushed to this lane, and the lock is held.
    pub(super) unsafe fn remove(&mut self, entry: &Entry<T>) -> bool {
        let is_queued = entry.stage.get() == Stage::Queued;
        if is_queued {
            entry.stage.set(Stage::Apart);
            entry.wake.set(None);
            // SAFETY: it is queued, and by the contract in this lane.
            unsafe { self.unlink(entry) };
        }
        is_queued
    }

    /// Serves the longest waiter, if it is `wanted`; `give` may write to its data.
    pub(super) fn serve_front_if<R>(
        &mut self,
        served: &mut Served<T>,
        wanted: impl Fn(&T) -> bool,
        give: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let entry = self.head;
        // SAFETY: a linked entry is alive by the contract of `push`.
        let entry = unsafe { entry.as_ref() }?;
        // SAFETY: linked, and under the lock.
        if !wanted(unsafe { entry.look() }) {
            return None;
        }
        // SAFETY: it is linked in this lane.
        unsafe { self.unlink(entry) };
        entry.stage.set(Stage::Served);
        served.push(entry);
        // SAFETY: it was just served under the lock.
        Some(give(unsafe { entry.data_mut() }))
    }

    /// # Safety
    /// `entry` is linked in this lane.
    unsafe fn unlink(&mut self, entry: &Entry<T>) {
        let (previous, next) = (entry.previous.get(), entry.next.get());
        if ptr::eq(next, entry) {
            self.head = ptr::null();
            return;
        }
        // SAFETY: the neighbours of a linked entry are linked, hence alive.
        unsafe {
            (*previous).next.set(next);
            (*next).previous.set(previous);
        }
        if ptr::eq(self.head, entry) {
            self.head = next;
        }
    }
}

/// Served entries that are to be woken, in their order. Wakes them when dropped: not under a lock.
pub(super) struct Served<T> {
    first: *const Entry<T>,
    last: *const Entry<T>,
}

impl<T> Served<T> {
    pub(super) const fn new() -> Self {
        Served { first: ptr::null(), last: ptr::null() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    fn push(&mut self, entry: &Entry<T>) {
        entry.next.set(ptr::null());
        // SAFETY: an entry of the chain is alive until its wake lands, which is when the chain is dropped.
        match unsafe { self.last.as_ref() } {
            None => self.first = entry,
            Some(last) => last.next.set(entry),
        }
        self.last = entry;
    }

    /// Takes the first wake out of the chain. Its entry is not touched again.
    #[inline]
    fn pop(&mut self) -> Option<RawWake> {
        // SAFETY: as in `push`.
        let entry = unsafe { self.first.as_ref() }?;
        self.first = entry.next.get();
        entry.wake.take()
    }

    /// Lands the other wakes before it calls the wakers of futures: such a waker may drop a future whose wake is among
    /// them, and that drop waits for it.
    #[cold]
    fn call_after_landing(&mut self, first: Waker) {
        let mut few = [const { None }; FEW];
        few[0] = Some(first);
        let (mut count, mut more) = (1, Vec::new());
        while let Some(wake) = self.pop() {
            let Some(waker) = wake.land() else { continue };
            match few.get_mut(count) {
                Some(place) => *place = Some(waker),
                None => more.push(waker),
            }
            count += 1;
        }
        few.into_iter().flatten().chain(more).for_each(call_waker);
    }
}

impl<T> Drop for Served<T> {
    #[inline]
    fn drop(&mut self) {
        while let Some(wake) = self.pop() {
            if let Some(waker) = wake.land() {
                self.call_after_landing(waker);
            }
        }
    }
}
