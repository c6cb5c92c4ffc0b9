//! The raw half of the wait queue: entries on the waiters' stacks, linked into lanes.
//!
//! ```text
//!             push                 take                       land
//!   Apart ───────────▶ Queued ─────────────▶ Served, chained ───────▶ Served, its waiter runs
//!     ▲                  │
//!     └──────────────────┘ remove, by its waiter; passed over, since its select token was taken elsewhere
//!
//!             requeue                       take                       land
//!   Queued ───────────▶ Served, in a lane ─────────────▶ Served, chained ───────▶ Served, its waiter runs
//!                       of another queue
//!
//!   Served or Apart ───────────▶ Taken: its waiter has the data
//!                    take_data
//!
//!  Lane{head} ─▶ Entry ⇄ Entry ⇄ Entry ⇄ (head)      a ring, so that one pointer finds both ends
//!  Served{first, last} ─▶ Entry ─▶ Entry             a chain, by `next` alone
//! ```
//!
//! Everything but the chain is touched under the lock of the queue alone. The chain belongs to the thread that served.
//! Its entries stay: each of their waiters finds `Served` under the lock, and then waits until its wake has landed.

use std::iter::{from_fn, successors};
use std::marker::PhantomPinned;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use crate::base::primitive::{Cell, UnsafeCell};
use crate::waiter::kind::{RawWake, wake_each};
use crate::waiter::select_token::Claim;

/// A waiter's place in a lane, and its data.
pub(super) struct Entry<T> {
    previous: Cell<*const Entry<T>>,
    next: Cell<*const Entry<T>>,
    wake: Cell<Option<RawWake>>,
    stage: Cell<Stage>,
    /// The token of the select that this entry is an arm of; null for any other entry.
    token: Cell<*const Claim>,
    /// The number of that arm.
    number: Cell<usize>,
    /// Initialized until the stage is `Taken`.
    data: UnsafeCell<ManuallyDrop<T>>,
    /// Its neighbours point to it.
    _pinned: PhantomPinned,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Apart,
    Queued,
    Served,
    Taken,
}

impl<T> Entry<T> {
    #[inline(always)]
    pub(super) const fn new(data: T) -> Self {
        Entry {
            previous: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            wake: Cell::new(None),
            stage: Cell::new(Stage::Apart),
            token: Cell::new(ptr::null()),
            number: Cell::new(0),
            data: UnsafeCell::new(ManuallyDrop::new(data)),
            _pinned: PhantomPinned,
        }
    }

    /// Returns true once a waker has taken the entry out. For its waiter: under the lock, or after
    /// the wake.
    pub(super) fn is_served(&self) -> bool {
        self.stage.get() == Stage::Served
    }

    /// Makes the entry the arm `number` of the select behind `token`.
    pub(super) fn stand_for(&self, token: &Claim, number: usize) {
        self.token.set(token);
        self.number.set(number);
    }

    /// Returns true for an arm of a select.
    #[inline(always)]
    fn is_arm(&self) -> bool {
        !self.token.get().is_null()
    }

    /// Returns the token of the select that the entry is an arm of, if any.
    ///
    /// # Safety
    /// The entry is linked, under the lock. The result is not kept beyond that.
    #[inline(always)]
    unsafe fn select_token<'a>(&self) -> Option<&'a Claim> {
        // SAFETY: a token lives as long as its entry is linked, by the contract of `push`.
        unsafe { self.token.get().as_ref() }
    }

    /// Returns true unless the entry is an arm of a select that was served elsewhere, or of the select behind `own`.
    ///
    /// # Safety
    /// The entry is linked, under the lock.
    unsafe fn is_open(&self, own: *const Claim) -> bool {
        // SAFETY: this function's contract.
        unsafe { self.select_token() }.is_none_or(|token| !ptr::eq(token, own) && token.is_open())
    }

    /// Returns the data, while only the caller reaches it.
    ///
    /// # Safety
    /// The entry is in no lane, its data was not taken, and the caller is its waiter or has just served it under the lock.
    /// The result is not kept beyond that.
    #[expect(clippy::mut_from_ref, reason = "the contract keeps the borrow alone")]
    #[inline(always)]
    pub(super) unsafe fn data_mut(&self) -> &mut T {
        // SAFETY: by this function's contract the borrow is the only one.
        unsafe { &mut *self.data.get() }
    }

    /// Returns the data, before or after a wait.
    #[inline(always)]
    pub(super) fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Takes the data out.
    ///
    /// # Safety
    /// The caller is the entry's waiter, its wait is over, and it takes the data once.
    #[inline(always)]
    pub(super) unsafe fn take_data(&self) -> T {
        self.stage.set(Stage::Taken);
        // SAFETY: the wait is over, so only the waiter reaches the data, and by the stage not again.
        unsafe { ManuallyDrop::take(&mut *self.data.get()) }
    }

    /// Returns the data of an entry in a lane.
    ///
    /// # Safety
    /// The entry is linked, and stays so while the result lives, under the lock.
    #[inline(always)]
    unsafe fn look(&self) -> &T {
        // SAFETY: nothing writes to the data of a linked entry, by the contracts of `data_mut` and `take_data`.
        unsafe { &*self.data.get() }
    }
}

impl<T> Drop for Entry<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.stage.get() != Stage::Taken {
            // SAFETY: it was not taken, is not used again, and no other party reaches it.
            unsafe { ManuallyDrop::drop(&mut *self.data.get()) };
        }
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

    /// Returns true if there is no entry, by one load.
    #[inline(always)]
    pub(super) fn is_bare(&self) -> bool {
        self.head.is_null()
    }

    /// Walks the entries, longest waiter first.
    fn entries(&self) -> impl Iterator<Item = &Entry<T>> {
        // SAFETY: a linked entry is alive by the contract of `push`; none is unlinked while this lane is borrowed.
        let first = unsafe { self.head.as_ref() };
        successors(first, |entry| {
            let next = entry.next.get();
            // SAFETY: as above.
            (!ptr::eq(next, self.head)).then(|| unsafe { &*next })
        })
    }

    /// Walks the data of the waiters that no other queue has served, longest waiter first.
    ///
    /// Leaves the arms of `own` out.
    pub(super) fn data(&self, own: *const Claim) -> impl Iterator<Item = &T> {
        // SAFETY: linked, and this lane stays borrowed.
        self.entries().filter(move |entry| unsafe { entry.is_open(own) }).map(|entry| unsafe { entry.look() })
    }

    /// Returns the first of [`data`](Lane::data).
    #[inline]
    pub(super) fn front(&self, own: *const Claim) -> Option<&T> {
        // SAFETY: a linked entry is alive by the contract of `push`.
        let first = unsafe { self.head.as_ref() }?;
        match first.is_arm() {
            // SAFETY: linked, and this lane stays borrowed.
            false => Some(unsafe { first.look() }),
            true => self.front_among_arms(own),
        }
    }

    #[cold]
    fn front_among_arms(&self, own: *const Claim) -> Option<&T> {
        self.data(own).next()
    }

    /// Links an entry in, at the back or `in_front`.
    ///
    /// # Safety
    /// `entry` is in no lane. It stays alive and in place until it was [removed](Lane::remove), or was served and its
    /// wake has landed; a select token that it [stands for](Entry::stand_for) lives as long. The lane is only reached under
    /// one lock, which is held. `wake` is of the waiter's present sleep.
    pub(super) unsafe fn push(&mut self, entry: &Entry<T>, wake: RawWake, in_front: bool) {
        entry.stage.set(Stage::Queued);
        entry.wake.set(Some(wake));
        // SAFETY: this function's contract.
        unsafe { self.link(entry, in_front) };
    }

    /// # Safety
    /// `entry` is in no lane, and stays alive and in place as `push` asks. The lock is held.
    #[inline]
    unsafe fn link(&mut self, entry: &Entry<T>, in_front: bool) {
        // SAFETY: linked entries are alive, by the contract of `push`.
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
                // In a ring the front is next to the back.
                if in_front {
                    self.head = entry;
                }
            }
        }
    }

    /// Unlinks an entry for its waiter. Returns false if it was served or passed over.
    ///
    /// # Safety
    /// `entry` was last pushed to this lane, and the lock is held.
    pub(super) unsafe fn remove(&mut self, entry: &Entry<T>) -> bool {
        let is_queued = entry.stage.get() == Stage::Queued;
        if is_queued {
            entry.stage.set(Stage::Apart);
            // SAFETY: it is queued, and by the contract in this lane.
            unsafe { self.unlink(entry) };
        }
        is_queued
    }

    /// Serves the longest waiter, if it is `wanted`; `give` may write to its data.
    #[inline]
    pub(super) fn serve_front_if<R>(
        &mut self,
        served: &mut Served<T>,
        wanted: impl Fn(&T) -> bool,
        give: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        self.take_front_if(wanted).map(|entry| give(served.take_in(entry)))
    }

    /// Serves the longest waiter, and returns its data.
    #[inline(always)]
    pub(super) fn serve_front<'a>(&mut self, served: &'a mut Served<T>) -> Option<&'a mut T> {
        self.take_front_if(|_| true).map(|entry| served.take_in(entry))
    }

    /// Serves the longest waiter, as the first one.
    #[inline(always)]
    pub(super) fn serve_front_alone(&mut self) -> Option<Served<T>> {
        self.take_front_if(|_| true).map(|entry| {
            let mut served = Served::new();
            served.take_in(entry);
            served
        })
    }

    /// Serves the longest waiter of those that are `wanted`, and returns its data.
    pub(super) fn serve_first<'a>(
        &mut self,
        served: &'a mut Served<T>,
        wanted: impl Fn(&T) -> bool,
    ) -> Option<&'a mut T> {
        loop {
            let is_wanted = |entry: &&Entry<T>| {
                // SAFETY: linked, and this lane stays borrowed.
                unsafe { entry.is_open(ptr::null()) && wanted(entry.look()) }
            };
            let entry = NonNull::from(self.entries().find(is_wanted)?);
            // SAFETY: it is linked in this lane.
            if unsafe { self.take_out(entry.as_ref(), entry.as_ref().select_token()) } {
                return Some(served.take_in(entry));
            }
        }
    }

    /// Serves the longest waiter later: takes it out, and leaves data and wake to the caller.
    pub(super) fn lend_front(&mut self) -> Option<Lent<T>> {
        let entry = self.take_front_if(|_| true)?;
        // SAFETY: as in `serve_front_if`.
        let wake = unsafe { entry.as_ref() }.wake.take();
        Some(Lent { entry, wake })
    }

    /// Moves the longest waiter to the back of a lane of another queue.
    ///
    /// Returns false if there is none. The waiter finds its entry served, and waits for the wake,
    /// which comes from the second queue. Both locks are held.
    pub(super) fn requeue_front(&mut self, other: &mut Lane<T>) -> bool {
        let Some(entry) = self.take_front_if(|_| true) else { return false };
        // SAFETY: as in `serve_front_if`.
        let entry = unsafe { entry.as_ref() };
        entry.token.set(ptr::null());
        // SAFETY: it is in no lane now. As a served entry it stays until its wake has landed.
        unsafe { other.link(entry, false) };
        true
    }

    /// Takes out the longest waiter that no other queue has served, if it is `wanted`.
    #[inline]
    fn take_front_if(&mut self, wanted: impl Fn(&T) -> bool) -> Option<NonNull<Entry<T>>> {
        loop {
            // SAFETY: a linked entry is alive by the contract of `push`.
            let entry = unsafe { self.head.as_ref() }?;
            // SAFETY: linked, and under the lock.
            let token = unsafe { entry.select_token() };
            // SAFETY: as above.
            if token.is_none_or(Claim::is_open) && !wanted(unsafe { entry.look() }) {
                return None;
            }
            // SAFETY: it is linked in this lane, and is not touched after but by a waker that it is handed to.
            if unsafe { self.take_out(&*ptr::from_ref(entry), token) } {
                return Some(NonNull::from(entry));
            }
        }
    }

    /// Unlinks an entry. Returns false if it is an arm of a select that was served elsewhere, whose wake is not used.
    ///
    /// # Safety
    /// `entry` is linked in this lane, and `token` is its own.
    #[inline]
    unsafe fn take_out(&mut self, entry: &Entry<T>, token: Option<&Claim>) -> bool {
        let is_claimed = token.is_none_or(|token| token.take(entry.number.get()));
        // SAFETY: this function's contract.
        unsafe { self.unlink(entry) };
        match is_claimed {
            // The waiter of a requeued entry reads this under the lock of its first queue.
            true if entry.is_served() => {}
            true => entry.stage.set(Stage::Served),
            false => entry.stage.set(Stage::Apart),
        }
        is_claimed
    }

    /// # Safety
    /// `entry` is linked in this lane.
    #[inline]
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

    /// Chains an entry that was just served under the lock, and returns its data.
    fn take_in(&mut self, entry: NonNull<Entry<T>>) -> &mut T {
        // SAFETY: it is alive until its wake lands, by the contract of `Lane::push`.
        let entry = unsafe { entry.as_ref() };
        self.push(entry);
        // SAFETY: it was just served under the lock.
        unsafe { entry.data_mut() }
    }

    /// Returns the data of the first entry. For its waker: under the lock.
    #[inline(always)]
    pub(super) fn first_data(&mut self) -> Option<&mut T> {
        // SAFETY: as in `push`.
        let first = unsafe { self.first.as_ref() }?;
        // SAFETY: it was served under the lock, which is still held, and the chain is borrowed.
        Some(unsafe { first.data_mut() })
    }

    #[inline]
    fn push(&mut self, entry: &Entry<T>) {
        entry.next.set(ptr::null());
        // SAFETY: an entry of the chain is alive until its wake lands, which is when the chain is dropped.
        match unsafe { self.last.as_ref() } {
            None => self.first = entry,
            Some(last) => last.next.set(entry),
        }
        self.last = entry;
    }

    fn land(&mut self) {
        wake_each(from_fn(|| self.pop()));
    }

    /// Takes the first wake out of the chain. Its entry is not touched again.
    #[inline]
    fn pop(&mut self) -> Option<RawWake> {
        // SAFETY: as in `push`.
        let entry = unsafe { self.first.as_ref() }?;
        self.first = entry.next.get();
        entry.wake.take()
    }
}

/// A waiter that was taken out of its queue and not woken yet: it stays until then, and its data is the owner's.
///
/// Dropped it wakes the waiter, which then was served without a gift.
#[must_use]
pub struct Lent<T> {
    entry: NonNull<Entry<T>>,
    wake: Option<RawWake>,
}

// SAFETY: it stands for the right to reach the data of an entry, which is `T`, and for a wake, which is `Send`.
unsafe impl<T: Send> Send for Lent<T> {}

impl<T> Lent<T> {
    /// Gives something to the waiter, and wakes it.
    pub fn give(self, give: impl FnOnce(&mut T)) {
        // SAFETY: the entry was served and stays until its wake lands, which is still here; nothing else reaches the data.
        give(unsafe { self.entry.as_ref().data_mut() });
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if let Some(wake) = self.wake.take() {
            wake.wake();
        }
    }
}

impl<T> Drop for Served<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.is_empty() {
            self.land();
        }
    }
}
