//! The wait in a queue as one arm of a select.

use std::cell::Cell;
use std::mem;
use std::ptr;

use crate::sleep::any::{Arm, Enlisted, Link};
use crate::sleep::queue::lane::{Entry, Served};
use crate::sleep::queue::wait::UNNAMED;
use crate::sleep::queue::waiters::Waiters;
use crate::sleep::queue::{Inner, WaitQueue};
use crate::waiter::description::{WaitDescription, WaitRecord};
use crate::waiter::kind::WakeHandle;
use crate::waiter::select_token::Claim;

/// What a primitive says to the arms of selects. The rules run under the lock of the queue, but for `published`.
pub struct ArmRules<S, T, const LANES: usize = 1> {
    /// True if the operation would not have to wait: the select then tries all of its operations again. The select's own
    /// arms are not among the waiters.
    pub is_ready: fn(&S, &T, &Waiters<'_, T, LANES>) -> bool,
    /// Runs when the arm is queued and the lock is released, before the select blocks. It must not wait, nor wake futures.
    pub published: fn(&WaitQueue<S, T, LANES>),
    /// Runs when the arm leaves unserved, which may serve those behind it.
    pub left: fn(&mut S, &mut T, &mut Waiters<'_, T, LANES>),
}

impl<S, T, const LANES: usize> ArmRules<S, T, LANES> {
    /// Makes rules for waiters that are in no other waiter's way.
    pub const fn new(is_ready: fn(&S, &T, &Waiters<'_, T, LANES>) -> bool) -> Self {
        ArmRules { is_ready, published: |_| (), left: |_, _, _| () }
    }
}

/// Variant of [`ArmRules`] for a primitive that keeps some state beside its queue.
pub trait ArmPolicy<S, T, const LANES: usize> {
    /// Returns true if the operation would not have to wait. If it would, the arm is queued next, with the data as it leaves
    /// them.
    fn is_ready(&self, state: &S, data: &mut T, waiters: &Waiters<'_, T, LANES>) -> bool;

    /// Runs when the arm is queued and the lock is released, before the select blocks.
    fn published(&self, _queue: &WaitQueue<S, T, LANES>) {}

    /// Runs when the arm leaves unserved, which may serve those behind it.
    fn left(&self, _state: &mut S, _data: &mut T, _waiters: &mut Waiters<'_, T, LANES>) {}
}

impl<S, T, const LANES: usize> ArmPolicy<S, T, LANES> for ArmRules<S, T, LANES> {
    fn is_ready(&self, state: &S, data: &mut T, waiters: &Waiters<'_, T, LANES>) -> bool {
        (self.is_ready)(state, data, waiters)
    }

    fn published(&self, queue: &WaitQueue<S, T, LANES>) {
        (self.published)(queue);
    }

    fn left(&self, state: &mut S, data: &mut T, waiters: &mut Waiters<'_, T, LANES>) {
        (self.left)(state, data, waiters);
    }
}

/// A place in a wait queue for one arm of a select. [`wait_any`](crate::sleep::any::wait_any) waits for it.
pub struct QueueArm<'q, S, T, const LANES: usize = 1, R = ArmRules<S, T, LANES>> {
    queue: &'q WaitQueue<S, T, LANES>,
    lane: Cell<usize>,
    rules: Cell<&'q R>,
    entry: Entry<T>,
    /// True inside `with_data`.
    is_lent: Cell<bool>,
    link: Link,
    /// Wakes that a hook owes: it must not wake.
    owed: Cell<Served<T>>,
}

impl<'q, S, T, const LANES: usize, R> QueueArm<'q, S, T, LANES, R> {
    /// Makes an arm that waits in `lane` with `data`.
    #[inline]
    pub const fn new(queue: &'q WaitQueue<S, T, LANES>, lane: usize, data: T, rules: &'q R) -> Self {
        assert!(lane < LANES, "a wait queue has no such lane");
        QueueArm {
            queue,
            lane: Cell::new(lane),
            rules: Cell::new(rules),
            entry: Entry::new(data),
            is_lent: Cell::new(false),
            link: Link::new(WaitRecord::new(UNNAMED, ptr::from_ref(queue).cast())),
            owed: Cell::new(Served::new()),
        }
    }

    /// Says what is waited for.
    pub const fn described(mut self, description: &'static WaitDescription) -> Self {
        self.link = Link::new(WaitRecord::new(description, ptr::from_ref(self.queue).cast()));
        self
    }

    /// Lets the next select wait in `lane` by `rules`.
    ///
    /// # Panics
    /// While a select waits for the arm.
    pub fn move_to(&self, lane: usize, rules: &'q R) {
        assert!(lane < LANES, "a wait queue has no such lane");
        assert!(!self.link.is_enlisted(), "an arm stays in its lane while a select waits");
        self.lane.set(lane);
        self.rules.set(rules);
    }

    /// Takes the data, as the waker has left it, and puts `next` in its place.
    ///
    /// # Panics
    /// While a select waits for the arm.
    pub fn replace(&self, next: T) -> T {
        self.with_data(|data| mem::replace(data, next))
    }

    /// Runs `f` with the data, as the waker has left it.
    ///
    /// # Panics
    /// While a select waits for the arm, and inside `f`.
    #[inline(always)]
    pub fn with_data<O>(&self, f: impl FnOnce(&mut T) -> O) -> O {
        assert!(!self.link.is_enlisted(), "the data of an arm belongs to its queue while a select waits");
        assert!(!self.is_lent.replace(true), "the data of an arm is lent once");
        // SAFETY: no select waits for the arm, so the entry is in no lane, and its wake has landed if it was served. By the flag
        // this is the only borrow.
        let result = f(unsafe { self.entry.data_mut() });
        self.is_lent.set(false);
        result
    }
}

// SAFETY: `withdraw` takes the entry out of its lane, and a lane uses the wake of an entry only once it has its token.
unsafe impl<S, T, const LANES: usize, R: ArmPolicy<S, T, LANES>> Arm for QueueArm<'_, S, T, LANES, R> {
    unsafe fn enlist(&self, me: WakeHandle<'_>, token: &Claim, number: usize) -> Enlisted {
        assert!(!self.is_lent.get(), "an arm whose data is lent does not wait");
        let mut served = Served::new();
        let mut inner = self.queue.inner.lock();
        let Inner { state, lanes } = &mut *inner;
        // SAFETY: it is in no lane yet, so its waiter alone reaches the data.
        let data = unsafe { self.entry.data_mut() };
        let waiters = Waiters::new(lanes, &mut served).seen_by(token);
        if self.rules.get().is_ready(state, data, &waiters) {
            return Enlisted::Ready;
        }
        self.entry.stand_for(token, number);
        // SAFETY: by the caller's contract the entry is in no lane and stays, as the token does, until it was withdrawn
        // or its wake has landed; the lock is held. One wake of the sleep is used: that of the arm that has the token.
        unsafe { lanes[self.lane.get()].push(&self.entry, me.raw(), false) };
        drop(inner);
        self.rules.get().published(self.queue);
        Enlisted::Waits
    }

    unsafe fn withdraw(&self) {
        let mut served = Served::new();
        let mut inner = self.queue.inner.lock();
        let Inner { state, lanes } = &mut *inner;
        // SAFETY: this lane is the one that the entry is pushed to; the lock is held.
        if unsafe { lanes[self.lane.get()].remove(&self.entry) } {
            let mut waiters = Waiters::new(lanes, &mut served);
            // SAFETY: it is in no lane, so its waiter alone reaches the data.
            self.rules.get().left(state, unsafe { self.entry.data_mut() }, &mut waiters);
        }
        drop(inner);
        self.owed.set(served);
    }

    fn departed(&self) {
        drop(self.owed.replace(Served::new()));
    }

    fn link(&self) -> &Link {
        &self.link
    }
}
