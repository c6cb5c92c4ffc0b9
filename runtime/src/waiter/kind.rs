//! Waiters, and the rights to wake them.
//!
//! A [`Waiter`] is the head of a task's allocation, of a thread's parking place, or of a polled
//! future's cell. Its [`Kind`] says how the waiter is made to run again.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::task::Waker;

use crate::base::payload::drop_payload;
use crate::waiter::word::{Woke, Word};

/// Holds the operations that differ between the kinds of waiter.
pub(crate) struct Kind {
    /// Notifies the present sleep, and makes the waiter run if it is asleep.
    ///
    /// For a future, hands out the waker to [call](call_waker), as `queue` does.
    ///
    /// # Safety
    /// The caller has a [`RawWake`] of the present sleep and uses it by this call; the waiter is not touched after.
    pub(crate) notify: unsafe fn(NonNull<Waiter>) -> Option<Waker>,
    /// Makes a waiter run that its waker found asleep.
    ///
    /// For a future, hands out the waker to [call](call_waker). That is user code, which may end
    /// other sleeps and wait for their wakes. So the caller lands all wakes that it owes before it
    /// calls.
    ///
    /// # Safety
    /// The caller's wake answered [`Woke::Queue`]. The caller calls once for it and touches the
    /// waiter no more.
    pub(crate) queue: unsafe fn(NonNull<Waiter>) -> Option<Waker>,
}

/// Heads every waiter: the first field of each of them.
#[repr(C)]
pub(crate) struct Waiter {
    pub(crate) word: Word,
    kind: &'static Kind,
}

impl Waiter {
    pub(crate) const fn new(kind: &'static Kind) -> Self {
        Waiter { word: Word::new(), kind }
    }
}

/// Gives a strategy access to the present sleep of a waiter.
#[derive(Clone, Copy)]
pub struct WakeHandle<'a> {
    waiter: NonNull<Waiter>,
    borrowed: PhantomData<&'a ()>,
}

impl<'a> WakeHandle<'a> {
    /// `waiter` lives for `'a` at the least.
    pub(crate) fn new(waiter: NonNull<Waiter>, _life: &'a ()) -> Self {
        WakeHandle { waiter, borrowed: PhantomData }
    }

    /// Takes the right to wake this sleep.
    ///
    /// # Safety
    /// The result is used at most once, for this sleep, and in one of two ways. Either it lands, or
    /// is dropped unused, before `before_awake` returns `Withdrawn`. Or its holder has unlinked it
    /// under the lock of the list it was published in, and `before_awake` answers `Served` from
    /// then on.
    ///
    /// At most one raw wake of a sleep is ever used: a sleeper waits for one landing, and a second
    /// wake would touch the sleeper after it.
    pub unsafe fn raw(self) -> RawWake {
        RawWake(self.waiter)
    }
}

/// Grants the right to wake one sleeper once. Dropped unused, it does nothing.
#[must_use]
pub struct RawWake(NonNull<Waiter>);

// SAFETY: a wake is made of atomics on the waiter's word and of `Kind::queue`, which may run on any thread.
unsafe impl Send for RawWake {}

impl RawWake {
    /// Notifies the sleeper.
    ///
    /// Must not be called with a lock held: on a worker it queues the task, elsewhere it may make a
    /// system call.
    pub fn wake(self) {
        if let Some(waker) = self.land() {
            call_waker(waker);
        }
    }

    /// Notifies the sleeper and hands out its waker, to [call](call_waker) once all other wakes
    /// have landed.
    #[inline]
    pub(crate) fn land(self) -> Option<Waker> {
        // SAFETY: by the contract of `raw` the waiter's sleep has not ended, so the waiter is alive; the wake is used up.
        unsafe { (self.kind().notify)(self.0) }
    }

    /// Returns the waiter that sleeps.
    pub(crate) fn waiter(&self) -> NonNull<Waiter> {
        self.0
    }

    /// Returns the kind of the waiter.
    #[inline]
    pub(crate) fn kind(&self) -> &'static Kind {
        // SAFETY: by the contract of `raw` the waiter's sleep has not ended, so the waiter is alive.
        unsafe { self.0.as_ref() }.kind
    }
}

/// Notifies a waiter by its word and queues it: the `notify` of most kinds.
///
/// # Safety
/// As for [`Kind::notify`].
pub(crate) unsafe fn notify_by_word(waiter: NonNull<Waiter>) -> Option<Waker> {
    // SAFETY: by this function's contract the waiter is alive until its wake has landed.
    let this = unsafe { waiter.as_ref() };
    let kind = this.kind;
    match this.word.notify() {
        Woke::Left => None,
        // SAFETY: this wake answered `Queue`.
        _ => unsafe { (kind.queue)(waiter) },
    }
}

/// Wakes all of `wakes` in order, and calls the wakers of futures once every wake has landed.
///
/// Such a waker may drop a future whose wake is among them, and the drop waits for the landing.
pub fn wake_each(wakes: impl IntoIterator<Item = RawWake>) {
    let mut wakes = wakes.into_iter();
    while let Some(wake) = wakes.next() {
        if let Some(waker) = wake.land() {
            call_after_landing(waker, &mut wakes);
        }
    }
}

/// Lands the wakes, then calls `first` and the other wakers. A single one takes no allocation.
#[cold]
fn call_after_landing(first: Waker, wakes: impl Iterator<Item = RawWake>) {
    let others: Vec<Waker> = wakes.filter_map(RawWake::land).collect();
    call_waker(first);
    others.into_iter().for_each(call_waker);
}

/// Calls the waker of a future, and contains its panic.
///
/// The caller may be a worker, which has to go on.
#[cold]
pub fn call_waker(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // The panic hook has printed the message already.
        drop_payload(payload);
    }
}
